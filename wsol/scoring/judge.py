"""The judge: the only place that compares an IoU with a level.

A protocol says how strict a hit is and which overlap counts. Everything that needs to know whether an image
was hit asks the protocol's `Judge`: scores, validation, the report's gallery and live figures, error kinds,
pictures. So they cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol as Shape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wsol.data.transforms import View
from wsol.localization.cutter import Boxes
from wsol.localization.extraction import Size
from wsol.scoring.error_kinds import error_kind
from wsol.scoring.iou import iou
from wsol.scoring.protocols import Protocol
from wsol.scoring.truths import frame_truths

HIT = 0.5  # the IoU that a box must reach
IOU_LEVELS = (0.3, 0.5, 0.7)  # those that MaxBoxAccV2 averages over
TOP5 = 5

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Overlaps(Shape):
    """IoU with the truth, in arrays of any equal shape: of the single box, and of the best contour."""

    @property
    def single(self) -> Floats: ...
    @property
    def best(self) -> Floats: ...


@dataclass(frozen=True)
class Judge:
    """The hit rule of one protocol.

    >>> from wsol.scoring.protocols import find_protocols
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> half = SimpleNamespace(single=np.array([0.5]), best=np.array([0.7]))
    >>> [bool(Judge(p).known(half)[0]) for p in find_protocols(["gpca", "bas", "wsoleval-v2"])]
    [True, False, True]
    """

    protocol: Protocol

    def counted(self, overlaps: Overlaps) -> Floats:
        """The overlap that the protocol itself counts: that of its single box, or of the best contour."""
        return overlaps.best if self.protocol.extraction.box == "all contours" else overlaps.single

    def known(self, overlaps: Overlaps, level: float = HIT) -> Bools:
        """GT-known localization: the box of the true class's map passes, whatever was predicted."""
        return _passes(self.counted(overlaps), level, self.protocol.strict_known)

    def box_passes(self, overlaps: Overlaps) -> Bools:
        """Whether the box would make a top-k hit, if the class is right."""
        return _passes(self.counted(overlaps), HIT, self.protocol.strict_top)

    def top(self, overlaps: Overlaps, ranks: ArrayLike, k: int) -> Bools:
        """Top-k localization: the true class is among the k best (its rank is below k) and the box passes."""
        return self.box_passes(overlaps) & (np.asarray(ranks) < k)

    def single(self, overlaps: Overlaps) -> Bools:
        """The single box at IoU 0.5, for BoxAcc."""
        return _passes(overlaps.single, HIT, self.protocol.strict_known)

    def contours(self, overlaps: Overlaps) -> Bools:
        """(3, ...) the best contour at IoU 0.3, 0.5 and 0.7, for BoxAccV2."""
        return np.stack([self.contour(overlaps, level) for level in IOU_LEVELS])

    def contour(self, overlaps: Overlaps, level: float) -> Bools:
        """The best contour at one IoU."""
        return _passes(overlaps.best, level, self.protocol.strict_known)

    def overlaps(self, boxes: Boxes, truths: Floats) -> tuple[Floats, Floats]:
        """(T,) the IoU of the single box, and of the best contour, with the truth box that fits best.

        truths: (m, 4) in the frame of the boxes; without any, nothing overlaps.
        """
        if len(truths) == 0:
            none = np.zeros(len(boxes.level))
            return none, none
        single = iou(boxes.single, truths, self.protocol.iou).max(axis=1)
        best = single
        if boxes.contours is not None:
            best = np.zeros(len(single))
            levels = boxes.contours.level
            if len(levels):
                overlap = iou(boxes.contours.boxes, truths, self.protocol.iou).max(axis=1)
                starts = np.flatnonzero(np.diff(levels, prepend=-1))
                best[levels[starts]] = np.maximum.reduceat(overlap, starts)
            best = np.where(boxes.empty, single, best)
        return single[boxes.level], best[boxes.level]

    def truths(self, view: View, truths: ArrayLike, size: Size) -> Floats:
        """Truth boxes (m, 4), floats in pixels of the original image of `size`, in the frame of the map."""
        protocol = self.protocol
        original = protocol.extraction.recipe.frame == "original"
        return frame_truths(protocol.truths, truths, view, size, original)

    def error_kind(self, box: ArrayLike, truths: Floats, right_class: bool, passed: bool) -> str:
        """Why an image is missed; see `wsol.scoring.error_kinds`. Box and truths in the frame."""
        return error_kind(box, truths, right_class, passed, self.protocol.iou)


def _passes(overlap: Floats, level: float, strict: bool) -> Bools:
    return overlap > level if strict else overlap >= level
