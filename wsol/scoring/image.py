"""One image under one or more protocols: boxes at every threshold, and their IoU with the truth."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wsol.data.transforms import View
from wsol.localization.boxes import IntArray
from wsol.localization.cutter import MapCutter
from wsol.localization.extraction import Size
from wsol.localization.maps import FloatMap
from wsol.scoring.judge import Judge
from wsol.scoring.protocols import Protocol
from wsol.scoring.pxap import PixelCounts, count_pixels, read_regions


class ScoredBoxes(NamedTuple):
    """What one protocol finds in one image at T thresholds.

    boxes: (T, 4) the single box, in the protocol's frame. empty: (T,) where it stands for no foreground.
    single: (T,) its best IoU with a truth box. best: (T,) the best IoU of any contour with any truth box.
    """

    boxes: IntArray
    empty: NDArray[np.bool_]
    single: NDArray[np.float64]
    best: NDArray[np.float64]


class ImageScorer:
    """Scores one raw map (h, w).

    Truth boxes (m, 4) are in pixels of the original image of `size` (width, height). `kept` is a memory to
    share between images that have the same raw map, as those of the centre-box baseline do. cut: where a head
    cuts its own raw map, None where thresholds do.
    """

    def __init__(
        self,
        raw: FloatMap,
        truths: ArrayLike,
        size: Size,
        view: View,
        kept: dict[Hashable, Any] | None = None,
        cut: float | None = None,
    ) -> None:
        self._cutter = MapCutter(raw, size, view, kept, cut)
        self._truths = truths
        self._framed: dict[Hashable, NDArray[np.float64]] = {}
        self._regions: NDArray[np.uint8] | None = None
        self._pixels: dict[Hashable, PixelCounts] = {}

    def find(self, protocol: Protocol, thresholds: NDArray[np.float64]) -> ScoredBoxes:
        """Boxes and overlaps at ascending thresholds."""
        judge = Judge(protocol)
        boxes = self._cutter.find(protocol.extraction, thresholds)
        single, best = judge.overlaps(boxes, self._truths_for(judge))
        return ScoredBoxes(boxes.single[boxes.level], boxes.empty[boxes.level], single, best)

    def pixels(self, protocol: Protocol, segmentation_path: Path) -> PixelCounts:
        """The scores of the protocol's map on and off the object that the segmentation shows.

        Counted in the square that the network sees, whatever the frame of the boxes: so every image has the
        same number of pixels, and figures of different protocols compare.
        """
        extraction, view = protocol.extraction, self._cutter.view
        key = (extraction.recipe, extraction.flat_is_empty)
        if key not in self._pixels:
            if self._regions is None:
                self._regions = read_regions(segmentation_path, view, self._cutter.size)
            score_map = self._cutter.score_map(extraction, (view.side, view.side))
            self._pixels[key] = count_pixels(score_map, self._regions)
        return self._pixels[key]

    def _truths_for(self, judge: Judge) -> NDArray[np.float64]:
        key = (judge.protocol.extraction.recipe.frame, judge.protocol.truths)
        if key not in self._framed:
            self._framed[key] = judge.truths(self._cutter.view, self._truths, self._cutter.size)
        return self._framed[key]
