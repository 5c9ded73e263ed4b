"""One raw map under one or more extractions: raw map -> score map -> boxes, at every threshold.

Extractions that agree on a step share its result: a `MapCutter` remembers the score maps and contours of the
one map it was made for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

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
from wsol.localization.extraction import BoxRule, Extraction, Size
from wsol.localization.maps import FloatMap, is_constant, prepare

T = TypeVar("T")

# The single box of each level, all contours (None where the single box is all there is), and the level of
# each threshold.
Ruled = tuple[IntArray, Contours | None, IntArray]


class Boxes(NamedTuple):
    """What an extraction finds in one map at T thresholds, L of which give different foregrounds.

    single: (L, 4) the single box of each level, in the extraction's frame. empty: (L,) where it stands for no
    foreground. contours: all contours of all levels, None where the single box is all there is.
    level: (T,) the level of each threshold.
    """

    single: IntArray
    empty: NDArray[np.bool_]
    contours: Contours | None
    level: IntArray


class MapCutter:
    """Cuts one raw map (h, w) of an image of `size` (width, height), seen through `view`.

    `kept` is a memory to share between images that have the same raw map, as those of the centre-box baseline
    do. cut: where a head cuts its own raw map, so that every threshold gives the same boxes; see
    `Extraction.for_own_cut`.

    >>> import numpy as np
    >>> from wsol.data.transforms import View
    >>> from wsol.localization.extraction import Extraction
    >>> raw = np.zeros((4, 4))
    >>> raw[1:3, 1:3] = 1
    >>> cutter = MapCutter(raw, size=(100, 50), view=View("resize", 4))
    >>> cutter.find(Extraction(), np.array([0.5])).single.tolist()
    [[1, 1, 3, 3]]
    """

    def __init__(
        self,
        raw: FloatMap,
        size: Size,
        view: View,
        kept: dict[Hashable, Any] | None = None,
        cut: float | None = None,
    ) -> None:
        # In float64 whatever a caller has, so that validation, evaluation and photos agree to the last box.
        self._raw = np.asarray(raw, dtype=np.float64)
        self._cut = cut
        if cut is not None:
            self._raw = self._raw - cut
        self.size, self.view = size, view
        self._kept: dict[Hashable, Any] = {} if kept is None else kept

    def score_map(self, extraction: Extraction, frame: Size | None = None) -> FloatMap:
        """The map in [0, 1] that is cut, in the extraction's frame or at another size."""
        frame = frame or extraction.frame_size(self.view, self.size)
        if self._cut is not None:
            extraction = extraction.for_own_cut(0.0)
        if extraction.flat_is_empty and is_constant(self._raw):
            return np.zeros(frame[::-1])
        recipe = extraction.recipe
        key = ("map", recipe.interpolation, recipe.normalize, recipe.first, frame)
        return self._once(key, lambda: prepare(self._raw, recipe, frame))

    def find(self, extraction: Extraction, thresholds: NDArray[np.float64]) -> Boxes:
        """The boxes at ascending thresholds."""
        if self._cut is not None:
            above = self._find(extraction.for_own_cut(0.0), np.zeros(1))
            return above._replace(level=np.zeros(len(thresholds), dtype=np.int64))
        return self._find(extraction, thresholds)

    def _find(self, extraction: Extraction, thresholds: NDArray[np.float64]) -> Boxes:
        single, contours, level = _RULES[extraction.single_box](self, extraction, thresholds)
        empty = single[:, 0] < 0
        frame = extraction.frame_size(self.view, self.size)
        boxes = np.where(empty[:, None], extraction.empty_box(frame), extraction.end(single, frame))
        if contours is not None:
            contours = contours._replace(boxes=extraction.end(contours.boxes, frame))
        return Boxes(boxes, empty, contours, level)

    def largest_contours(self, extraction: Extraction, thresholds: NDArray[np.float64]) -> Ruled:
        levels, contours = self._contours(extraction, thresholds, areas=True)
        assert contours.largest is not None
        return contours.largest, contours, levels.index

    def largest_components(self, extraction: Extraction, thresholds: NDArray[np.float64]) -> Ruled:
        levels, contours = self._contours(extraction, thresholds, areas=False)
        return largest_component_boxes(levels, contours), contours, levels.index

    def first_largest_components(self, extraction: Extraction, thresholds: NDArray[np.float64]) -> Ruled:
        levels, contours = self._contours(extraction, thresholds, areas=False)
        return largest_component_boxes(levels, contours, first_pixel=True), contours, levels.index

    def all_foreground(self, extraction: Extraction, thresholds: NDArray[np.float64]) -> Ruled:
        e, frame = extraction, extraction.frame_size(self.view, self.size)
        key = ("all", e.recipe, frame, e.flat_is_empty, e.strict, thresholds.tobytes())
        boxes = self._once(key, lambda: foreground_boxes(self.score_map(e), thresholds, e.strict))
        return boxes, None, np.arange(len(thresholds))

    def _contours(
        self, e: Extraction, thresholds: NDArray[np.float64], areas: bool
    ) -> tuple[Levels, Contours]:
        frame = e.frame_size(self.view, self.size)
        key = (e.recipe, frame, e.flat_is_empty, e.grey, e.strict, e.holes, thresholds.tobytes())

        def make() -> tuple[Levels, Contours]:
            score_map = self.score_map(e)
            if e.grey is None:
                levels = cut(score_map, thresholds, e.strict)
            else:
                levels = cut_quantized(score_map, thresholds, e.grey)
            return levels, contour_boxes(levels, e.holes, areas)

        if not areas and (True, key) in self._kept:  # found already, together with the areas
            areas = True
        return self._once((areas, key), make)

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        result: T = self._kept[key]
        return result


_RULES: dict[BoxRule, Callable[[MapCutter, Extraction, NDArray[np.float64]], Ruled]] = {
    "largest component": MapCutter.largest_components,
    "first largest component": MapCutter.first_largest_components,
    "largest contour": MapCutter.largest_contours,
    "all foreground": MapCutter.all_foreground,
}
