"""From a score map to boxes, at one threshold or at a thousand, without a pass for each threshold.

A map and its ascending thresholds are first reduced to a **depth** image: how many of the distinct threshold
levels a pixel passes. The foreground at level j is then `depth > j`, whatever the thresholds were, and all
later steps work on small integers. The components of all levels come from one component tree
(`wsol.localization.component_tree`); a few levels, or an image with very many peaks, are done one by one with
OpenCV. The results are the same: foreground is 8-connected, and holes have contours of their own, one pixel
wider than the hole.

Boxes are x0, y0, x1, y1 in pixels of the map with x1 = x + width, one beyond the last pixel. An extraction
says which far end a protocol counts (`wsol.localization.extraction`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from wsol.localization import component_tree
from wsol.localization.component_tree import Components, Depth, IntArray, find_components
from wsol.localization.grey import GREYS, Grey
from wsol.localization.maps import FloatMap

FEW_LEVELS = 48  # up to here a pass for each level is faster than the tree
MANY_PEAKS = 512  # beyond, the tree is slower than passes
FEW_CUTS = 8  # up to here comparing with each threshold is faster than looking levels up
GRAINS = 1 << 15  # parts of [0, 1] in which most pixels find their level by a look-up


class Levels(NamedTuple):
    """A map cut at ascending thresholds.

    depth: (H, W) unsigned, the number of distinct levels that each pixel passes. fine: the map itself.
    num: how many distinct levels there are. index: (T,) the level of each threshold.
    """

    depth: Depth
    fine: FloatMap
    num: int
    index: IntArray  # type: ignore[assignment]  # hides tuple.index, which is not used here


class Contours(NamedTuple):
    """The contours of every level.

    boxes: (K, 4) of all of them. level: (K,) ascending. largest: (num, 4) the box of the one with the largest
    area. most: (num, 4) the box of the component with the most pixels. Both are -1 where there is no
    foreground, and None where they were not asked for or not found on the way. tied: (num,) where several
    components have the most pixels; None where `most` is.
    """

    boxes: IntArray
    level: IntArray
    largest: IntArray | None
    most: IntArray | None
    tied: NDArray[np.bool_] | None = None


def cut(score_map: FloatMap, thresholds: NDArray[np.float64], strict: bool = True) -> Levels:
    """Foreground is `map > t` (strict) or `map >= t`."""
    index = np.arange(len(thresholds))
    if len(thresholds) <= FEW_CUTS:
        passed = [score_map > t if strict else score_map >= t for t in thresholds.tolist()]
        return Levels(np.sum(passed, axis=0, dtype=np.uint8), score_map, len(thresholds), index)
    first, last = _grains(thresholds.tobytes(), strict)
    grain = (score_map * GRAINS).astype(np.int64)
    depth = first.take(grain)
    # Only where a threshold lies inside the grain of a pixel must it be compared.
    unsure = np.flatnonzero(depth != last.take(grain))
    side = "left" if strict else "right"
    values = score_map.ravel()[unsure]
    depth.ravel()[unsure] = np.searchsorted(thresholds, values, side=side)  # type: ignore[call-overload]
    return Levels(depth, score_map, len(thresholds), index)


@lru_cache(maxsize=16)
def _grains(thresholds: bytes, strict: bool) -> tuple[Depth, Depth]:
    """How many thresholds the lower and the upper end of each grain pass. GRAINS is a power of two, so that
    a value's grain is exact."""
    values = np.frombuffer(thresholds, dtype=np.float64)
    edges = np.arange(GRAINS + 2) / GRAINS
    side = "left" if strict else "right"
    passed = np.searchsorted(values, edges, side=side)  # type: ignore[call-overload]
    return _small(passed[:-1], len(values)), _small(passed[1:], len(values))


def cut_quantized(score_map: FloatMap, thresholds: NDArray[np.float64], grey: Grey = "bytes") -> Levels:
    """Foreground is `image > int(t * max(image))` for the map as an 8-bit grey image.

    At most 255 of these levels differ, however many thresholds there are.
    """
    image = GREYS[grey](score_map)
    cuts = (thresholds * image.max()).astype(np.int64)
    levels, index = np.unique(cuts, return_inverse=True)
    passed = np.searchsorted(levels, np.arange(256), side="left")
    return Levels(_small(passed, len(levels))[image], score_map, len(levels), index.astype(np.int64))


def foreground_boxes(score_map: FloatMap, thresholds: NDArray[np.float64], strict: bool = True) -> IntArray:
    """(T, 4): the box around all of the foreground; (-1, -1, -1, -1) where there is none.

    The maxima of rows and columns tell where it begins and ends: no pixel needs its level.
    """
    columns = cut(score_map.max(axis=0)[None], thresholds, strict)
    rows = cut(score_map.max(axis=1)[None], thresholds, strict)
    x0, _, x1, _ = _extents(columns).T
    y0, _, y1, _ = _extents(rows).T
    boxes = np.stack([x0, y0, x1, y1], axis=1)
    boxes[columns.depth.max() :] = -1
    return boxes


def contour_boxes(levels: Levels, holes: bool = True, areas: bool = True) -> Contours:
    """The contours at all levels: the outer ones, one for each component, and those of holes if asked for.

    areas: whether the largest by area is wanted.
    """
    occupied = min(int(levels.depth.max()), levels.num)  # the levels above have no foreground
    if occupied > FEW_LEVELS and min(levels.depth.shape) > 2:
        sizes = (component_tree.pixels, component_tree.areas)[: 1 + areas]
        outer = find_components(
            levels.depth, levels.fine, levels.num, diagonal=True, most=MANY_PEAKS, sizes=sizes
        )
        inner = _find_holes(levels) if holes else None
        if outer is not None and (inner is not None or not holes):
            return _from_trees(levels, outer, inner)
    return _from_passes(levels, range(occupied), holes)


def largest_component_boxes(levels: Levels, contours: Contours, first_pixel: bool = False) -> IntArray:
    """(num, 4): the box of the 8-connected component with the most pixels; -1 where there is no foreground.

    It differs from the largest contour where components lie beside each other or have holes. Between equals
    the topmost box is taken, then the leftmost. With `first_pixel` it is the component that comes first when
    the pixels are read row by row.
    """
    if contours.most is None:
        boxes = np.full((levels.num, 4), -1, dtype=np.int64)
        boxes[contours.level] = contours.boxes
        # Where a level has a single contour there is a single component, and nothing needs to be counted.
        unsure = np.bincount(contours.level, minlength=levels.num) > 1
    else:
        assert contours.tied is not None
        boxes, unsure = contours.most.copy(), contours.tied & first_pixel
    extents = _extents(levels)
    for level in np.flatnonzero(unsure).tolist():
        x0, y0, x1, y1 = extents[level].tolist()
        mask = (levels.depth[y0:y1, x0:x1] > level).view(np.uint8)
        _, owner, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
        x, y, w, h, pixels = stats[1:].T.astype(np.int64)
        found = np.stack([x0 + x, y0 + y, x0 + x + w, y0 + y + h], axis=1)
        if first_pixel:
            most = np.append(False, pixels == pixels.max())  # label 0 is the background
            chosen = int(owner.ravel()[np.argmax(most[owner])]) - 1
        else:
            chosen = int(_first_of_most(pixels, found, np.zeros_like(pixels))[0])
        boxes[level] = found[chosen]
    return boxes


def _find_holes(levels: Levels) -> Components | None:
    """The holes of every level, as components of the background without the outer background.

    Background is 4-connected. A frame of background around the image joins all background that reaches the
    edge. The frame is deeper than every pixel, so that component holds the highest peak.
    """
    height = np.uint16(levels.num) - levels.depth.astype(np.uint16)
    frame = np.pad(height, 1, constant_values=levels.num + 1)
    fine = np.pad(1 - levels.fine, 1, constant_values=1)
    found = find_components(frame, fine, levels.num, diagonal=False, most=MANY_PEAKS, sizes=())
    if found is None:
        return None
    kept = ~found.highest
    # Background at level j is depth <= j, which is height > num - 1 - j. Back from the frame, and the
    # contour runs through the foreground around the hole: one pixel wider on every side.
    level = levels.num - 1 - found.level[kept]
    boxes = found.boxes[kept] + np.array([-2, -2, 0, 0])
    return Components(level, boxes, found.highest[kept], {})


def _from_trees(levels: Levels, outer: Components, inner: Components | None) -> Contours:
    level, boxes = outer.level, outer.boxes
    if inner is not None:
        level, boxes = np.concatenate([level, inner.level]), np.concatenate([boxes, inner.boxes])
        order = np.argsort(level, kind="stable")
        level, boxes = level[order], boxes[order]
    most = np.full((levels.num, 4), -1, dtype=np.int64)
    counted = _first_of_most(outer.sizes["pixels"], outer.boxes, outer.level)
    most[outer.level[counted]] = outer.boxes[counted]
    largest = _largest_by_area(levels, outer) if "area" in outer.sizes else None
    return Contours(boxes, level, largest, most, _tied(levels, outer))


def _tied(levels: Levels, outer: Components) -> NDArray[np.bool_]:
    """(num,) whether several components of a level have the most pixels."""
    pixels, starts = outer.sizes["pixels"], _starts(outer.level)
    best = np.maximum.reduceat(pixels, starts)
    equal = pixels == np.repeat(best, np.diff(starts, append=len(pixels)))
    return np.bincount(outer.level[equal], minlength=levels.num) > 1


def _largest_by_area(levels: Levels, outer: Components) -> IntArray:
    """(num, 4): the box of the largest contour, by a pass where the tree cannot decide."""
    largest = np.full((levels.num, 4), -1, dtype=np.int64)
    winners, sure = _largest_outer(outer)
    largest[outer.level[winners]] = outer.boxes[winners]
    unsure = outer.level[winners[~sure]].tolist()
    if unsure:
        passed = _from_passes(levels, unsure, holes=True).largest
        assert passed is not None
        largest[unsure] = passed[unsure]
    return largest


def _largest_outer(outer: Components) -> tuple[IntArray, NDArray[np.bool_]]:
    """The row of the component with the largest contour area at each level, and whether that is sure.

    The area inside an outer contour is what the tree counted plus that inside its hole contours. So it is
    known where the Euler number tells of no hole, and else lies between the count and the box. It is also
    larger than any of its hole contours, unless the count is 0. Equal areas are not sure: order decides.
    """
    least, euler = outer.sizes["area"], outer.sizes["euler"]
    inside = (outer.boxes[:, 2] - outer.boxes[:, 0] - 1) * (outer.boxes[:, 3] - outer.boxes[:, 1] - 1)
    utmost = np.where(euler == 1, least, inside)
    starts = _starts(outer.level)
    best = np.maximum.reduceat(least, starts)
    equal = np.flatnonzero(least == np.repeat(best, np.diff(starts, append=len(least))))
    winners = equal[_starts(outer.level[equal])]
    rivals = utmost.copy()
    rivals[winners] = -1
    strongest = np.maximum.reduceat(rivals, starts)
    alone = (euler[winners] == 1) | (least[winners] > 0)
    return winners, (least[winners] > strongest) & alone


def _first_of_most(pixels: NDArray[np.floating] | IntArray, boxes: IntArray, level: IntArray) -> IntArray:
    """The row with the most pixels at each level; between equals the topmost, then the leftmost."""
    starts = _starts(level)
    best = np.maximum.reduceat(pixels, starts)
    rows = np.flatnonzero(pixels == np.repeat(best, np.diff(starts, append=len(pixels))))
    if len(rows) > len(starts):
        x0, y0, x1, y1 = boxes[rows].T
        rows = rows[np.lexsort((x1, y1, x0, y0, level[rows]))]
        rows = rows[_starts(level[rows])]
    return rows


def _starts(level: IntArray) -> IntArray:
    """Where each value begins in an ascending array."""
    return np.flatnonzero(np.diff(level, prepend=-1))


def _from_passes(levels: Levels, wanted: Sequence[int], holes: bool) -> Contours:
    """The contours of the wanted levels, each by a pass of its own over the part that holds foreground."""
    extents = _extents(levels)
    boxes: list[tuple[int, ...]] = []
    level_of: list[int] = []
    largest = np.full((levels.num, 4), -1, dtype=np.int64)
    for level in wanted:
        x0, y0, x1, y1 = extents[level].tolist()
        mask = (levels.depth[y0:y1, x0:x1] > level).view(np.uint8)
        # A tree, since the order of the contours decides between equal areas.
        contours, tree = cv2.findContours(mask, cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE, offset=(x0, y0))
        rectangles = map(cv2.boundingRect, contours)
        found: list[tuple[int, ...]] = [(x, y, x + w, y + h) for x, y, w, h in rectangles]
        areas = [cv2.contourArea(contour) for contour in contours] if len(contours) > 1 else [0.0]
        largest[level] = found[areas.index(max(areas))]
        kept = found if holes or len(found) == 1 else _outer(found, tree[0, :, 3])
        boxes += kept
        level_of += [level] * len(kept)
    all_boxes = np.array(boxes, dtype=np.int64).reshape(-1, 4)
    return Contours(all_boxes, np.array(level_of, dtype=np.int64), largest, None)


def _outer(boxes: list[tuple[int, ...]], parent: NDArray[np.int32]) -> list[tuple[int, ...]]:
    """The boxes of the contours that are not holes: those with an even number of others around them."""
    around = np.zeros(len(boxes), dtype=np.int64)
    up = parent
    while (up >= 0).any():
        around += up >= 0
        up = np.where(up >= 0, parent[up], -1)
    return [box for box, count in zip(boxes, around.tolist(), strict=True) if count % 2 == 0]


def _small(values: NDArray[np.int64], largest: int) -> NDArray[np.unsignedinteger]:
    return values.astype(np.uint8 if largest <= 255 else np.uint16)


def _extents(levels: Levels) -> IntArray:
    """(num, 4): x0, y0, x1, y1 (the ends excluded) around the foreground of each level, from the maxima of
    rows and columns: the first column whose running maximum exceeds j is the first that level j touches."""
    columns, rows = levels.depth.max(axis=0), levels.depth.max(axis=1)
    wanted = np.arange(levels.num)

    def first(maxima: NDArray[np.unsignedinteger]) -> IntArray:
        return np.searchsorted(np.maximum.accumulate(maxima).astype(np.int64), wanted, side="right")

    ends = (first(columns), first(rows), len(columns) - first(columns[::-1]), len(rows) - first(rows[::-1]))
    return np.stack(ends, axis=1)
