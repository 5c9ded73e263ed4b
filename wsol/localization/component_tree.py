"""The connected components of every level of an image at once, with a fixed number of passes over its pixels.

For an image of small whole numbers (`depth`), the components of {depth > t} for all t >= 0 form a tree: as t
falls, a component appears at a peak, grows, and merges with others. The tree is found without a loop over
pixels or levels:

1. Every pixel points at the highest pixel of its neighbourhood (ties are broken by a finer map, then by
   position), and pointers are followed to the end. This makes one *basin* for each peak. The way from a pixel
   to its peak never falls, so at any level what is left of a basin hangs together.
2. Two basins touch at level t where two neighbouring pixels, one of each, are above t. So the level at which
   they merge, directly or through others, follows from the highest *pass* between each pair: a spanning tree
   over a few dozen basins (Kruskal's algorithm).
3. Boxes and sizes of a basin at every level are running minima and sums along its levels; those of a
   component combine the basins that it has absorbed.

Sizes count 2 x 2 squares of pixels. The polygon through the centres of a component's outer border pixels,
whose area `cv2.contourArea` gives, holds 1 for each square with four pixels of the component and 1/2 for each
with three, where there is no hole. And there is none where the Euler number is 1: (squares with one pixel -
squares with three - 2 x squares with two at opposite corners) / 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Depth = NDArray[np.unsignedinteger]

Sizes = Callable[[Depth, NDArray[np.int64], int], dict[str, NDArray[np.float64]]]

FINE_BITS = 24


class Components(NamedTuple):
    """The components of all levels, sorted by level.

    level: (K,). boxes: (K, 4) with the ends excluded. highest: (K,) whether it holds the highest peak of all.
    sizes: by name, what was asked for of `pixels`, `area` (without holes) and `euler`, (K,) each.
    """

    level: IntArray
    boxes: IntArray
    highest: NDArray[np.bool_]
    sizes: dict[str, NDArray[np.float64]]


def find_components(
    depth: Depth, fine: NDArray[np.floating], num: int, *, diagonal: bool, most: int, sizes: Sequence[Sizes]
) -> Components | None:
    """The components of {depth > t}, t = 0 ... num - 1; None where there are more than `most` basins.

    fine: a map in [0, 1]; where it is larger, depth is not smaller. diagonal: whether pixels that touch at
    a corner are neighbours, as the Euler number supposes.
    """
    basin, roots = _basins(depth, fine, diagonal)
    if len(roots) > most:
        return None
    tops = depth.ravel()[roots].astype(np.int64)
    sides = _sides(depth, basin, len(roots))
    amounts = {n: a for size in sizes for n, a in size(depth, basin, len(roots)).items()}
    by_depth = np.array(list(amounts.values()), dtype=np.float64).reshape(len(amounts), *sides.shape[1:])
    sums = by_depth[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]  # of what lies at each depth and above
    absorbed = np.zeros(len(roots), dtype=np.int64)  # the level below which a basin belongs to another
    parent, height = list(range(len(roots))), tops.tolist()

    def find(b: int) -> int:
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        return b

    for level, one, other in _passes(depth, basin, len(roots), diagonal):
        a, b = find(one), find(other)
        if a == b:
            continue
        if height[a] < height[b]:  # the one with the higher peak absorbs the other
            a, b = b, a
        parent[b], absorbed[b] = a, level
        # Column d of a table holds what lies at depth d and above: level t is in column t + 1.
        below = np.s_[1 : level + 1]
        np.minimum(sides[:, a, below], sides[:, b, below], out=sides[:, a, below])
        sums[:, a, below] += sums[:, b, below]

    wanted = np.arange(num)[:, None]
    levels, owner = np.nonzero((wanted >= absorbed) & (wanted < tops))
    boxes = sides[:, owner, levels + 1].T.astype(np.int64)
    boxes[:, 2:] *= -1
    found = dict(zip(amounts, sums[:, owner, levels + 1], strict=True))
    return Components(levels, boxes, owner == find(int(np.argmax(tops))), found)


def _basins(
    depth: Depth, fine: NDArray[np.floating], diagonal: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """((H, W) the basin of each pixel, (B,) the position of each basin's peak)."""
    size = depth.size
    bits = max(size - 1, 1).bit_length()
    key = (fine * ((1 << FINE_BITS) - 1)).astype(np.int64)
    key |= depth.astype(np.int64) << FINE_BITS
    key <<= bits
    positions = _positions(size)
    key |= positions.reshape(depth.shape)
    column = key.copy()
    np.maximum(column[1:], key[:-1], out=column[1:])
    np.maximum(column[:-1], key[1:], out=column[:-1])
    beside = column if diagonal else key
    highest = column.copy()
    np.maximum(highest[:, 1:], beside[:, :-1], out=highest[:, 1:])
    np.maximum(highest[:, :-1], beside[:, 1:], out=highest[:, :-1])
    highest &= (1 << bits) - 1
    pointer = highest.ravel().astype(np.int32)  # half the memory to walk through
    while True:
        further = pointer.take(pointer)
        if np.array_equal(further, pointer):
            break
        pointer = further.take(further)
    roots = np.flatnonzero(pointer == positions)
    number = np.empty(size, dtype=np.int64)
    number[roots] = np.arange(len(roots))
    return number.take(pointer).reshape(depth.shape), roots


def _passes(
    depth: Depth, basin: NDArray[np.int64], num_basins: int, diagonal: bool
) -> list[tuple[int, int, int]]:
    """(level below which two basins touch, one, other) for every pair that touches above 0, highest first."""
    width = depth.shape[1]
    steps = (1, width, width + 1, width - 1) if diagonal else (1, width)
    flat_basin, flat_depth = basin.ravel(), depth.ravel()
    table = np.zeros(num_basins * num_basins, dtype=depth.dtype)
    for step in steps:
        first, second = flat_basin[:-step], flat_basin[step:]
        at = np.flatnonzero(first != second)
        if step != width:  # a step to the side must not wrap around the edge of the image
            column = at % width
            at = at[column != (0 if step == width - 1 else width - 1)]
        one, other = first[at], second[at]
        code = np.minimum(one, other) * num_basins + np.maximum(one, other)
        np.maximum.at(table, code, np.minimum(flat_depth[at], flat_depth[at + step]))
    codes = np.flatnonzero(table)
    order = codes[np.argsort(-table[codes].astype(np.int64), kind="stable")]
    one, other = np.divmod(order, num_basins)
    return list(zip(table[order].tolist(), one.tolist(), other.tolist(), strict=True))


@lru_cache(maxsize=8)
def _positions(size: int) -> NDArray[np.int64]:
    return np.arange(size)


@lru_cache(maxsize=8)
def _coordinates(shape: tuple[int, int]) -> NDArray[np.int32]:
    """x (column by column, backwards), y (row by row, backwards), -1 - x and -1 - y forwards."""
    y, x = np.indices(shape, dtype=np.int32)
    return np.stack([x.T.ravel()[::-1], y.ravel()[::-1], -1 - x.T.ravel(), -1 - y.ravel()])


def _sides(depth: Depth, basin: NDArray[np.int64], num_basins: int) -> NDArray[np.int32]:
    """(4, B, depths): x0, y0, -x1, -y1 of what lies in each basin at each depth and above."""
    columns = int(depth.max()) + 1
    code = basin * columns + depth
    by_rows, by_columns = code.ravel(), code.T.ravel()
    sides = np.full((4, num_basins * columns), max(depth.shape), dtype=np.int32)
    x_back, y_back, x, y = _coordinates(depth.shape)
    # Where an index repeats, the last assignment stays: so the order of the pixels gives their extremes.
    sides[0][by_columns[::-1]] = x_back
    sides[1][by_rows[::-1]] = y_back
    sides[2][by_columns] = x
    sides[3][by_rows] = y
    by_depth = sides.reshape(4, num_basins, columns)[:, :, ::-1]
    return np.minimum.accumulate(by_depth, axis=2)[:, :, ::-1]


def pixels(depth: Depth, basin: NDArray[np.int64], num_basins: int) -> dict[str, NDArray[np.float64]]:
    """How many pixels of each basin lie at each depth, (B * depths,)."""
    columns = int(depth.max()) + 1
    counts = np.bincount((basin * columns + depth).ravel(), minlength=num_basins * columns)
    return {"pixels": counts.astype(np.float64)}


def areas(depth: Depth, basin: NDArray[np.int64], num_basins: int) -> dict[str, NDArray[np.float64]]:
    """What each depth adds to the area and the Euler number of each basin, (B * depths,).

    With the depths of a 2 x 2 square sorted, v1 >= v2 >= v3 >= v4, a level t < v1 has at least one of its
    pixels, t < v2 two, and so on; all of them belong to the component of the highest one.
    """
    columns = int(depth.max()) + 1
    total = num_basins * columns
    wide = np.pad(depth, 1)
    owners = np.pad(basin, 1) * columns
    a, b, c, d = wide[:-1, :-1], wide[:-1, 1:], wide[1:, :-1], wide[1:, 1:]
    top_high, top_low = np.maximum(a, b), np.minimum(a, b)
    bottom_high, bottom_low = np.maximum(c, d), np.minimum(c, d)
    first, fourth = np.maximum(top_high, bottom_high), np.minimum(top_low, bottom_low)
    inner = np.minimum(top_high, bottom_high)
    outer = np.maximum(top_low, bottom_low)
    second, third = np.maximum(inner, outer), np.minimum(inner, outer)
    opposite = np.maximum(np.minimum(a, d), np.minimum(b, c))  # both pixels of a diagonal are there above it
    owner = np.where(
        top_high >= bottom_high,
        np.where(a >= b, owners[:-1, :-1], owners[:-1, 1:]),
        np.where(c >= d, owners[1:, :-1], owners[1:, 1:]),
    )

    def count(values: Depth, weight: float) -> NDArray[np.float64]:
        """`weight` for every square at all levels below its value, by the value."""
        return np.bincount((owner + values).ravel(), minlength=total) * np.float64(weight)

    # One pixel: v2 <= t < v1, worth 1/4. Two opposite: the diagonal is there but no third pixel, worth -1/2.
    # Three: v4 <= t < v3, worth -1/4. So t < v3 adds 1/2 - 1/4.
    alone = np.maximum(opposite, third)
    three, four = count(third, 0.25), count(fourth, 0.25)
    euler = count(first, 0.25) - count(second, 0.25) - count(alone, 0.5) + three + four
    return {"area": 2 * (three + four), "euler": euler}
