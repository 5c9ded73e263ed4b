"""From a score map to boxes, at one threshold or at a thousand, without a pass for each threshold.

A map and its ascending thresholds are first reduced to a **depth** image: how many of the distinct threshold
levels a pixel passes. The foreground at level j is then `depth > j`, whatever the thresholds were, and all
that follows works on small integers.

Contours are found level by level with OpenCV (8-connected foreground, holes have contours of their own).
Most levels of a smooth map need no pass. Walking down from level b to level a, a component can only appear
at a regional maximum of depth v with a < v <= b, and a hole can only vanish at a regional minimum v in that
same range. So where there is none, and both ends have exactly one contour, every level between them has
exactly one contour too: its box is that of the whole foreground, which the row and column maxima give for all
levels at once.

Boxes are x0, y0, x1, y1 in pixels of the map with x1 = x + width clipped to W - 1, as the field has it.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from skimage.morphology import local_maxima, local_minima

from wsol.localize.maps import FloatMap

IntArray = NDArray[np.int64]
Contoured = tuple[list[tuple[int, ...]], int]  # the boxes of one level, the position of the largest


class Levels(NamedTuple):
    """A map cut at ascending thresholds.

    depth: (H, W) unsigned, the number of distinct levels that each pixel passes.
    num: how many distinct levels there are. index: (T,) the level of each threshold.
    """

    depth: NDArray[np.unsignedinteger]
    num: int
    index: IntArray  # type: ignore[assignment]  # hides tuple.index, which nobody wants here


class Contours(NamedTuple):
    """Every contour of every level, outer ones and holes.

    boxes: (K, 4). level: (K,) ascending. largest: (num,) the row of the contour of the largest area of each
    level, -1 where a level has no foreground.
    """

    boxes: IntArray
    level: IntArray
    largest: IntArray


def cut(score_map: FloatMap, thresholds: NDArray[np.float64], strict: bool = True) -> Levels:
    """Foreground is `map > t` (strict) or `map >= t`."""
    side = "left" if strict else "right"
    depth = np.searchsorted(thresholds, score_map, side=side)  # type: ignore[call-overload]
    return Levels(_small(depth, len(thresholds)), len(thresholds), np.arange(len(thresholds)))


def cut_quantized(score_map: FloatMap, thresholds: NDArray[np.float64]) -> Levels:
    """Foreground is `image > int(t * max(image))` for image = uint8(255 map), both truncated.

    At most 255 of these levels differ, however many thresholds there are.
    """
    image = (score_map * 255).astype(np.uint8)
    cuts = (thresholds * image.max()).astype(np.int64)
    levels, index = np.unique(cuts, return_inverse=True)
    passed = np.searchsorted(levels, np.arange(256), side="left")
    return Levels(_small(passed, len(levels))[image], len(levels), index.astype(np.int64))


def foreground_boxes(levels: Levels) -> IntArray:
    """(num, 4): the box around all of the foreground; (-1, -1, -1, -1) where there is none."""
    height, width = levels.depth.shape
    boxes = _extents(levels)
    boxes[:, 2] = np.minimum(boxes[:, 2], width - 1)
    boxes[:, 3] = np.minimum(boxes[:, 3], height - 1)
    boxes[levels.depth.max() :] = -1
    return boxes


def contour_boxes(levels: Levels) -> Contours:
    """The boxes of all contours at all levels, and which contour of each level has the largest area."""
    depth, num = levels.depth, levels.num
    height, width = depth.shape
    occupied = min(int(depth.max()), num)  # the levels above have no foreground
    extents = _extents(levels)
    found: dict[int, Contoured] = {}

    def visit(level: int) -> bool:
        """Find the contours of one level, once; whether there is exactly one."""
        if level not in found:
            found[level] = _contours_at(depth, level, extents[level])
        return len(found[level][0]) == 1

    for first, last in _quiet_ranges(depth, occupied):
        pending = [(first, last)]
        while pending:
            low, high = pending.pop()
            if visit(low) & visit(high):
                for level in range(low + 1, high):
                    found[level] = ([tuple(extents[level].tolist())], 0)
            elif high - low > 1:
                middle = (low + high) // 2
                pending += [(low, middle), (middle, high)]

    counts = np.array([len(found[level][0]) for level in range(occupied)], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    boxes = np.array([box for level in range(occupied) for box in found[level][0]], dtype=np.int64)
    boxes = np.minimum(boxes.reshape(-1, 4), [width, height, width - 1, height - 1])
    largest = np.full(num, -1, dtype=np.int64)
    largest[:occupied] = starts[:-1] + [found[level][1] for level in range(occupied)]
    return Contours(boxes, np.repeat(np.arange(occupied), counts), largest)


def largest_contour_boxes(levels: Levels, contours: Contours) -> IntArray:
    """(num, 4): the box of the contour with the largest area; -1 where there is no foreground."""
    boxes = np.full((levels.num, 4), -1, dtype=np.int64)
    some = contours.largest >= 0
    boxes[some] = contours.boxes[contours.largest[some]]
    return boxes


def largest_component_boxes(levels: Levels, contours: Contours) -> IntArray:
    """(num, 4): the box of the 8-connected component with the most pixels; -1 where there is no foreground.

    It differs from the largest contour where components lie beside each other or have holes. Where a level
    has a single contour there is a single component, and nothing needs to be counted.
    """
    boxes = largest_contour_boxes(levels, contours)
    height, width = levels.depth.shape
    extents = _extents(levels)
    counts = np.bincount(contours.level, minlength=levels.num)
    for level in np.flatnonzero(counts > 1).tolist():
        x0, y0, x1, y1 = extents[level].tolist()
        mask = (levels.depth[y0:y1, x0:x1] > level).view(np.uint8)
        _, _, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
        x, y, w, h, _ = stats[1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))].tolist()
        boxes[level] = (x0 + x, y0 + y, min(x0 + x + w, width - 1), min(y0 + y + h, height - 1))
    return boxes


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


def _quiet_ranges(depth: NDArray[np.unsignedinteger], occupied: int) -> list[tuple[int, int]]:
    """The (first, last) levels of the ranges inside which no component appears and no hole vanishes."""
    if occupied == 0:
        return []
    if min(depth.shape) < 3:  # too thin for an interior
        return [(level, level) for level in range(occupied)]
    peaks = local_maxima(depth, connectivity=2)
    pits = local_minima(depth, connectivity=1, allow_borders=False)
    events = np.unique(depth[peaks | pits])
    group = np.searchsorted(events, np.arange(occupied), side="right")
    firsts = np.flatnonzero(np.diff(group, prepend=-1))
    lasts = np.append(firsts[1:], occupied) - 1
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def _contours_at(depth: NDArray[np.unsignedinteger], level: int, extent: IntArray) -> Contoured:
    """The boxes (ends excluded) of the contours at one level and the position of the largest by area.

    Only the part of the image that holds foreground is searched. RETR_TREE, since the order of the contours
    decides between equal areas.
    """
    x0, y0, x1, y1 = extent.tolist()
    mask = (depth[y0:y1, x0:x1] > level).view(np.uint8)
    contours, _ = cv2.findContours(mask, cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE, offset=(x0, y0))
    if len(contours) == 1:
        return [(x0, y0, x1, y1)], 0
    boxes: list[tuple[int, ...]] = [(x, y, x + w, y + h) for x, y, w, h in map(cv2.boundingRect, contours)]
    areas = [cv2.contourArea(contour) for contour in contours]
    return boxes, areas.index(max(areas))
