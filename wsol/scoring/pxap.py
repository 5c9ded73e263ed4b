"""PxAP: the area under the precision-recall curve of pixel scores, where masks of the objects exist.

All pixels of all images are taken together. Scores are counted in bins of 0.001 over [0, 1], one more bin
for 1 itself; at the lower edge t of each bin, a pixel with score >= t is called object. With precision P and
recall R at the edges t_0 > t_1 > ...,

    PxAP = sum_i P(t_i) (R(t_i) - R(t_{i-1}))

A mask is an image in which the object is brighter than half of the mask's maximum. It is resized with the
nearest neighbour to where the score map lies. An image `NAME_ignore.png` beside the mask `NAME.png` marks
pixels that count neither way, unless they belong to the object.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from wsol.data.image import read_image
from wsol.data.transforms import View
from wsol.localize.boxes import cut
from wsol.localize.maps import FloatMap

EDGES = np.append(np.arange(0, 1, 0.001), [1.0, 2.0])


@dataclass(frozen=True)
class PixelCounts:
    """Pixels per bin of score, ascending: on the object and off it."""

    on: NDArray[np.int64]
    off: NDArray[np.int64]

    def __add__(self, other: PixelCounts) -> PixelCounts:
        return PixelCounts(self.on + other.on, self.off + other.off)

    def average_precision(self) -> float:
        """In [0, 1]; 0 where no pixel belongs to an object."""
        true, false = self.on[::-1].cumsum(), self.off[::-1].cumsum()
        if true[-1] == 0:
            return 0.0
        called = true + false
        precision = np.divide(true, called, out=np.zeros(len(true)), where=called > 0)
        return float((precision * np.diff(true / true[-1], prepend=0)).sum())


class Regions(NamedTuple):
    """(H, W) each: where the object is, and where it is not; ignored pixels are in neither."""

    on: NDArray[np.bool_]
    off: NDArray[np.bool_]


def read_regions(mask_path: Path, view: View, size: tuple[int, int]) -> Regions:
    """The regions of one image at the size (width, height) of its score map."""
    on = _read_mask(mask_path, view, size)
    off = ~on
    ignore_path = mask_path.with_name(f"{mask_path.stem}_ignore.png")
    if ignore_path.is_file():
        off &= ~_read_mask(ignore_path, view, size)
    return Regions(on, off)


def count_pixels(score_map: FloatMap, regions: Regions) -> PixelCounts:
    """The scores of one image on and off its object."""
    bins = cut(score_map, EDGES[:-1], strict=False).depth  # 1 is the first bin: every score is at least 0
    counts = [np.bincount(bins[region], minlength=len(EDGES))[1:] for region in regions]
    return PixelCounts(*counts)


def _read_mask(path: Path, view: View, size: tuple[int, int]) -> NDArray[np.bool_]:
    """The mask at the size of a score map: in the network's square or, at any other size, the whole image."""
    values = read_image(path).max(axis=2)
    mask = (values > values.max() / 2).astype(np.uint8)
    if size == (view.side, view.side):
        mask = cv2.resize(mask, (view.resized, view.resized), interpolation=cv2.INTER_NEAREST)
        margin = view.margin
        mask = mask[margin : margin + view.side, margin : margin + view.side]
    else:
        mask = cv2.resize(mask, size, interpolation=cv2.INTER_NEAREST)
    return mask > 0
