"""One object in a photo from a raw map with a cut of its own: its box and its mask."""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from wsol.data.transforms import View
from wsol.localization.cutter import MapCutter
from wsol.localization.extraction import Extraction
from wsol.localization.localized import Finding, Localization
from wsol.localization.maps import Recipe

# The map in the pixels of the photo, so that the box is exactly the one around the mask.
EXTRACTION = Extraction(
    recipe=Recipe("bilinear", "minmax", "resize", "original"), box="largest component", far_end="beyond"
)


@dataclass(frozen=True)
class FoundObject:
    """One photo: what `Localization` shows of it, and the mask (H, W) of the object.

    Without an object in it, nothing is `found` and the mask is empty.
    """

    localization: Localization
    mask: NDArray[np.bool_] = field(repr=False)

    @property
    def is_there(self) -> bool:
        return bool(self.localization.found)


def locate(
    raw: NDArray[np.float32], image: NDArray[np.uint8], view: View, cut: float, label: int, name: str
) -> FoundObject:
    """The object in one photo from its raw map (h, w): the largest component of what lies above the cut.

    Its score is the share of the map above the cut that the component holds: 1 where there is no other.
    """
    size = image.shape[1], image.shape[0]
    cutter = MapCutter(raw, size, view, cut=cut)
    boxes, heat = cutter.find(EXTRACTION, np.zeros(1)), cutter.score_map(EXTRACTION)
    region = view.region(size)
    if boxes.empty[0]:
        return FoundObject(Localization(image, [], heat, region), np.zeros(heat.shape, dtype=bool))
    mask = largest_component(heat > 0)
    box = EXTRACTION.to_original(view, boxes.single[0], size)
    score = min(float(heat[mask].sum() / heat.sum()), 1.0)  # rounding may go beyond
    return FoundObject(Localization(image, [Finding(label, name, score, box)], heat, region), mask)


def largest_component(foreground: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The 8-connected component with the most pixels; between equals the topmost box, then the leftmost."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(foreground.view(np.uint8), connectivity=8)
    x, y, w, h, pixels = stats[1:].T
    best = np.lexsort((x + w, y + h, x, y, -pixels))[0]
    largest: NDArray[np.bool_] = labels == best + 1
    return largest
