"""Score maps in memory, or in files of one's own, with the truth boxes of their images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wsol.data.transforms import View
from wsol.errors import ConfigError
from wsol.localization.maps import FloatMap
from wsol.localization.predictions import class_ranks
from wsol.scoring.map_folder import inspect_map, read_map


class MapArrays:
    """Maps as arrays (h, w) or paths of .npy files, one for each image; see `wsol.score`."""

    same_map = False
    cut = None
    classes_by = None

    def __init__(
        self,
        maps: Sequence[ArrayLike | Path | str] | NDArray[Any],
        boxes: Sequence[ArrayLike] | NDArray[Any],
        view: View,
        sizes: Sequence[tuple[int, int]] | None = None,
        labels: ArrayLike | None = None,
        class_scores: ArrayLike | None = None,
    ) -> None:
        self._maps = [Path(m) if isinstance(m, (str, Path)) else np.asarray(m) for m in maps]
        self._boxes = [np.asarray(b, dtype=np.float64).reshape(-1, 4) for b in boxes]
        for what, count in (("boxes", len(self._boxes)), ("sizes", len(sizes or self._maps))):
            if count != len(self._maps):
                raise ConfigError(f"{len(self._maps)} maps, but {what} for {count} images")
        self.view = view
        self._sizes = list(sizes) if sizes is not None else None
        self.labels = np.zeros(len(self), np.int64) if labels is None else np.asarray(labels, np.int64)
        self.ranks: NDArray[np.int64] | None = None
        self.classes: tuple[str, ...] = tuple(
            f"class {i}" for i in range(int(self.labels.max(initial=0)) + 1)
        )
        if class_scores is not None:
            table = np.asarray(class_scores, dtype=np.float64)
            if labels is None or table.ndim != 2 or len(table) != len(self) or len(self.labels) != len(self):
                raise ConfigError(
                    f"class_scores {table.shape}: expected (images, classes), with a label for each image"
                )
            if self.labels.min(initial=0) < 0 or self.labels.max(initial=0) >= table.shape[1]:
                raise ConfigError(
                    f"labels must be from 0 to {table.shape[1] - 1}, as class_scores has columns"
                )
            self.ranks = class_ranks(table, self.labels)
            self.classes = tuple(f"class {i}" for i in range(table.shape[1]))

    def __len__(self) -> int:
        return len(self._maps)

    def raw_map(self, row: int) -> FloatMap:
        one = self._maps[row]
        return read_map(one) if isinstance(one, Path) else one.astype(np.promote_types(one.dtype, np.float32))

    def truths(self, row: int) -> NDArray[np.float64]:
        return self._boxes[row]

    def size(self, row: int) -> tuple[int, int]:
        if self._sizes is not None:
            return self._sizes[row]
        height, width = self.raw_map(row).shape
        return width, height

    def segmentation_path(self, row: int) -> Path | None:
        return None

    def unreadable(self, row: int) -> bool:
        return False

    def check(self, any_range: bool) -> tuple[list[str], list[int]]:
        """(what cannot be scored, the rows of constant maps), each in full."""
        faults, constant = [], []
        for row, one in enumerate(self._maps):
            name = str(one) if isinstance(one, Path) else f"map {row}"
            fault, flat = inspect_map(one, any_range)
            faults += [f"{name}: {fault}"] if fault else []
            constant += [row] if flat else []
        return faults, constant
