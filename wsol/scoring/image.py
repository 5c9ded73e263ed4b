"""One image under one or more protocols: raw map -> score map -> boxes -> IoU with the truth, per threshold.

Protocols that agree on a step share its result: an `ImageScorer` remembers the score maps and contours of the
one image it was made for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wsol.data.transforms import View
from wsol.localization.boxes import (
    Contours,
    IntArray,
    Levels,
    contour_boxes,
    cut,
    cut_quantized,
    foreground_boxes,
    largest_component_boxes,
)
from wsol.localization.maps import FloatMap, is_constant, prepare
from wsol.scoring.frames import Size, empty_box, frame_size, truths_in_frame
from wsol.scoring.iou import iou
from wsol.scoring.protocols import BoxRule, Protocol
from wsol.scoring.pxap import PixelCounts, count_pixels, read_regions

T = TypeVar("T")


class Found(NamedTuple):
    """What one protocol finds in one image at T thresholds.

    boxes: (T, 4) the single box, in the protocol's frame. empty: (T,) where it stands for no foreground.
    single: (T,) its best IoU with a truth box. best: (T,) the best IoU of any contour with any truth box.
    """

    boxes: IntArray
    empty: NDArray[np.bool_]
    single: NDArray[np.float64]
    best: NDArray[np.float64]


# The single box of each level, all contours (None where the single box is all there is), and the level of
# each threshold.
Ruled = tuple[IntArray, Contours | None, IntArray]


class ImageScorer:
    """Scores one raw map (h, w), in the precision that it has.

    Truth boxes (m, 4) are in pixels of the original image of `size` (width, height). `kept` is a memory to
    share between images that have the same raw map, as those of the centre-box baseline do.
    """

    def __init__(
        self,
        raw: FloatMap,
        truths: ArrayLike,
        size: Size,
        view: View,
        kept: dict[Hashable, Any] | None = None,
    ) -> None:
        # In float64 whatever a caller has, so that validation, evaluation and photos agree to the last box.
        self._raw = np.asarray(raw, dtype=np.float64)
        self._truths, self._size, self._view = truths, size, view
        self._kept: dict[Hashable, Any] = {} if kept is None else kept
        self._framed: dict[Hashable, NDArray[np.float64]] = {}
        self._regions: NDArray[np.uint8] | None = None
        self._pixels: dict[Hashable, PixelCounts] = {}

    def score_map(self, protocol: Protocol) -> FloatMap:
        """The map in [0, 1] that the protocol cuts, in its frame."""
        return self._score_map(protocol, frame_size(protocol, self._view, self._size))

    def _score_map(self, protocol: Protocol, frame: Size) -> FloatMap:
        if protocol.flat_is_empty and is_constant(self._raw):
            return np.zeros(frame[::-1])
        recipe = protocol.recipe
        key = ("map", recipe.interpolation, recipe.normalize, recipe.first, frame)
        return self._once(key, lambda: prepare(self._raw, recipe, frame))

    def find(self, protocol: Protocol, thresholds: NDArray[np.float64]) -> Found:
        """Boxes and overlaps at ascending thresholds."""
        single, contours, at = _RULES[protocol.single_box](self, protocol, thresholds)
        empty = single[:, 0] < 0
        frame = frame_size(protocol, self._view, self._size)
        boxes = np.where(empty[:, None], empty_box(protocol, frame), single)
        truths = self._truths_in(protocol)
        if len(truths) == 0:
            none = np.zeros(len(thresholds))
            return Found(boxes[at], empty[at], none, none)
        overlap = iou(boxes, truths, protocol.iou).max(axis=1)
        best = overlap
        if contours is not None:
            best = np.where(empty, overlap, _best_by_level(contours, len(boxes), truths, protocol))
        return Found(boxes[at], empty[at], overlap[at], best[at])

    def pixels(self, protocol: Protocol, segmentation_path: Path) -> PixelCounts:
        """The scores of the protocol's map on and off the object that the mask shows.

        Counted in the square that the network sees, whatever the frame of the boxes: so every image has the
        same number of pixels, and figures of different protocols compare.
        """
        key = (protocol.recipe, protocol.flat_is_empty)
        if key not in self._pixels:
            if self._regions is None:
                self._regions = read_regions(segmentation_path, self._view)
            square = (self._view.side, self._view.side)
            self._pixels[key] = count_pixels(self._score_map(protocol, square), self._regions)
        return self._pixels[key]

    def largest_contours(self, protocol: Protocol, thresholds: NDArray[np.float64]) -> Ruled:
        levels, contours = self._contours(protocol, thresholds, areas=True)
        assert contours.largest is not None
        return contours.largest, contours, levels.index

    def largest_components(self, protocol: Protocol, thresholds: NDArray[np.float64]) -> Ruled:
        levels, contours = self._contours(protocol, thresholds, areas=False)
        return largest_component_boxes(levels, contours), contours, levels.index

    def all_foreground(self, protocol: Protocol, thresholds: NDArray[np.float64]) -> Ruled:
        frame = frame_size(protocol, self._view, self._size)
        key = ("all", protocol.recipe, frame, protocol.flat_is_empty, protocol.strict, thresholds.tobytes())
        boxes = self._once(
            key, lambda: foreground_boxes(self.score_map(protocol), thresholds, protocol.strict)
        )
        return boxes, None, np.arange(len(thresholds))

    def _contours(self, p: Protocol, thresholds: NDArray[np.float64], areas: bool) -> tuple[Levels, Contours]:
        frame = frame_size(p, self._view, self._size)
        key = (p.recipe, frame, p.flat_is_empty, p.quantized, p.strict, p.holes, thresholds.tobytes())

        def make() -> tuple[Levels, Contours]:
            levels = self._cut(p, thresholds)
            return levels, contour_boxes(levels, p.holes, areas)

        if not areas and (True, key) in self._kept:  # found with more than is needed
            areas = True
        return self._once((areas, key), make)

    def _truths_in(self, p: Protocol) -> NDArray[np.float64]:
        key = (p.recipe.frame, p.integer_truth)
        if key not in self._framed:
            self._framed[key] = truths_in_frame(p, self._view, self._truths, self._size)
        return self._framed[key]

    def _cut(self, protocol: Protocol, thresholds: NDArray[np.float64]) -> Levels:
        score_map = self.score_map(protocol)
        if protocol.quantized:
            return cut_quantized(score_map, thresholds)
        return cut(score_map, thresholds, protocol.strict)

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        result: T = self._kept[key]
        return result


_RULES: dict[BoxRule, Callable[[ImageScorer, Protocol, NDArray[np.float64]], Ruled]] = {
    "largest component": ImageScorer.largest_components,
    "largest contour": ImageScorer.largest_contours,
    "all foreground": ImageScorer.all_foreground,
}


def _best_by_level(
    contours: Contours, num: int, truths: NDArray[np.float64], protocol: Protocol
) -> NDArray[np.float64]:
    """(num,) the best overlap of any contour of a level with any truth box; 0 where there is no contour."""
    best = np.zeros(num)
    if len(contours.boxes):
        overlap = iou(contours.boxes, truths, protocol.iou).max(axis=1)
        starts = np.flatnonzero(np.diff(contours.level, prepend=-1))
        best[contours.level[starts]] = np.maximum.reduceat(overlap, starts)
    return best
