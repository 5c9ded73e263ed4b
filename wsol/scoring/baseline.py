"""The centre-box baseline: a centred Gaussian as the map of every image.

It knows nothing of the image. On CUB it beats several published methods, so it stands beside every result.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wsol.data.transforms import View
from wsol.scoring.sweep import MapSource

SPREAD = (
    0.25  # the standard deviation as a share of the side; our choice, it matters at a fixed threshold only
)


def centre_map(side: int) -> NDArray[np.float64]:
    """(side, side): exp(-d^2 / (2 s^2)) with d the distance from the centre and s a quarter of the side."""
    offsets = np.arange(side) - (side - 1) / 2
    line = np.exp(-(offsets**2) / (2 * (SPREAD * side) ** 2))
    return np.outer(line, line)


class CentreMaps:
    """The images of another source, each with the centred Gaussian for its map and no classes."""

    same_map = True
    ranks = None
    cut = None
    classes_by = None

    def __init__(self, source: MapSource) -> None:
        self._source = source
        self._map = centre_map(source.view.side)

    def __len__(self) -> int:
        return len(self._source)

    @property
    def labels(self) -> NDArray[np.integer]:
        return self._source.labels

    @property
    def classes(self) -> tuple[str, ...]:
        return self._source.classes

    @property
    def view(self) -> View:
        return self._source.view

    def raw_map(self, row: int) -> NDArray[np.float64]:
        return self._map

    def truths(self, row: int) -> NDArray[np.float64]:
        return self._source.truths(row)

    def size(self, row: int) -> tuple[int, int]:
        return self._source.size(row)

    def segmentation_path(self, row: int) -> Path | None:
        return None  # the baseline is one of boxes

    def unreadable(self, row: int) -> bool:
        return self._source.unreadable(row)
