"""From the map of another localizer to labels of pixels, which a guided head learns from.

A map x is enlarged to the square of the training image (bilinear) and stretched, p = (x - min) / (max - min):

    foreground    the largest component of p > `foreground`
    background    p < `background`
    undecided     all others

A map with a cut of its own (`ddt`) needs no two thresholds: foreground is the largest component above the
cut, background is what does not lie above it, and the other components are undecided. A map that is constant
or holds NaN says nothing: all of its pixels are undecided.

Our reading of SPOL, whose maps are products of several stages: foreground p > 0.25 or near it, background
p < 0.01. In the map of a plain CAM nearly nothing lies below 0.01, and much around the object above 0.25.
No box takes part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wsol.config import Refine
from wsol.localization.found_object import largest_component
from wsol.localization.maps import FloatMap, is_constant, minmax, resize
from wsol.localization.predictions import Predictions
from wsol.models.heads.targets import BACKGROUND, FOREGROUND, UNDECIDED


def label_pixels(
    raw: FloatMap, side: int, foreground: float, background: float, cut: float | None = None
) -> NDArray[np.uint8]:
    """(side, side) of BACKGROUND, FOREGROUND and UNDECIDED from a raw map (h, w).

    >>> label_pixels(np.array([[0.0, 1.0], [0.3, 0.0]]), 2, foreground=0.5, background=0.1)
    array([[  0,   1],
           [255,   0]], dtype=uint8)
    """
    labels = np.full((side, side), UNDECIDED, dtype=np.uint8)
    if not np.isfinite(raw).all() or is_constant(raw):
        return labels
    enlarged = resize(raw, (side, side), "bilinear")
    if cut is not None:
        above, below = enlarged > cut, enlarged <= cut
    else:
        p = minmax(enlarged)
        above, below = p > foreground, p < background
    labels[below] = BACKGROUND
    if above.any():
        labels[largest_component(above)] = FOREGROUND
    return labels


@dataclass(frozen=True)
class Guides:
    """The labels of the pixels of each training image, computed when they are asked for.

    maps: what the source said of these images, in their order. side: of the square before the crop.
    """

    maps: Predictions
    side: int
    refine: Refine

    def __call__(self, index: int) -> NDArray[np.uint8]:
        raw, r = self.maps.raw_map(index), self.refine
        return label_pixels(raw, self.side, r.foreground, r.background, self.maps.cut)
