"""PxAP: the area under the precision-recall curve of pixel scores, where segmentations of the objects exist.

All pixels of all images are taken together. Scores are counted in bins of 0.001 over [0, 1], one more bin
for 1 itself; at the lower edge t of each bin, a pixel with score >= t is called object. With precision P and
recall R at the edges t_0 > t_1 > ...,

    PxAP = sum_i P(t_i) (R(t_i) - R(t_{i-1}))

A segmentation is an image in which the object is brighter than half of the image's maximum. It is brought to
the square that the network sees, with the nearest neighbour. An image `NAME_ignore.png` beside the file
`NAME.png` marks pixels that count neither way, unless they belong to the object.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from wsol.data.image import read_segmentation
from wsol.data.transforms import View
from wsol.errors import DataError
from wsol.localization.boxes import cut
from wsol.localization.maps import FloatMap

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


def read_regions(segmentation_path: Path, view: View, size: tuple[int, int]) -> NDArray[np.uint8]:
    """(side, side) in the network's square: 1 on the object, 0 off it, 2 where ignored.

    Raises DataError where the file cannot be read, or is not of the image's `size` (width, height).
    """
    regions = _read_marked(segmentation_path, view, size)
    ignore_path = segmentation_path.with_name(f"{segmentation_path.stem}_ignore.png")
    if ignore_path.is_file():
        regions = np.maximum(regions, 2 * (_read_marked(ignore_path, view, size) > regions).view(np.uint8))
    return regions


def count_pixels(score_map: FloatMap, regions: NDArray[np.uint8]) -> PixelCounts:
    """The scores of one image on and off its object."""
    bins = cut(score_map, EDGES[:-1], strict=False).depth  # 1 is the first bin: every score is at least 0
    coded = bins + regions * np.uint16(len(EDGES))
    off, on, _ = np.bincount(coded.ravel(), minlength=3 * len(EDGES)).reshape(3, -1)[:, 1:]
    return PixelCounts(on, off)


def _read_marked(path: Path, view: View, size: tuple[int, int]) -> NDArray[np.uint8]:
    """(side, side): 1 where the drawing is brighter than half of its maximum."""
    values = read_segmentation(path)
    if values.shape != (size[1], size[0]):
        given, wanted = f"{values.shape[1]} x {values.shape[0]}", f"{size[0]} x {size[1]}"
        raise DataError.at(
            path, None, f"a segmentation of {given} for an image of {wanted}; repair or remove it"
        )
    marked = (values > values.max() / 2).astype(np.uint8)
    marked = cv2.resize(marked, (view.resized, view.resized), interpolation=cv2.INTER_NEAREST)
    inside = slice(view.margin, view.margin + view.side)
    return marked[inside, inside]
