"""Score maps that another program made: `DIR/<image path>.npy`, float, height x width, in [0, 1].

They are taken as they are, as wsolevaluation does: brought to the protocol's size where they have another
one and clipped to [0, 1] again, not normalised unless that is asked for. Everything that cannot be scored is
found before scoring starts, in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wsol.data.image import in_threads
from wsol.data.transforms import View, ViewKind
from wsol.errors import DataError
from wsol.localization.maps import FloatMap, is_constant
from wsol.records import DataIndex, Sample

SIDE = 224  # of the square that the field's maps belong to


class MapFolder:
    """The maps of a split of a data set, one file each."""

    same_map = False
    classes_by = None
    ranks = None
    cut = None

    def __init__(
        self, folder: Path, samples: Sequence[Sample], classes: tuple[str, ...], view: ViewKind
    ) -> None:
        self.folder = folder
        self.samples = tuple(samples)
        self.classes = classes
        self.view = View(view, SIDE)
        self.labels = np.array([s.label for s in samples], dtype=np.int64)

    @classmethod
    def open(cls, folder: Path, index: DataIndex, split: str, view: ViewKind) -> MapFolder:
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder; it should hold <image path>.npy for every image")
        samples = index.split(split)
        if not samples:
            raise DataError(f"{index.root}: no images in the split {split!r}: nothing to score")
        return cls(folder, samples, index.classes, view)

    def __len__(self) -> int:
        return len(self.samples)

    def path(self, row: int) -> Path:
        return self.folder / f"{self.samples[row].name}.npy"

    def raw_map(self, row: int) -> FloatMap:
        return read_map(self.path(row))

    def truths(self, row: int) -> NDArray[np.float64]:
        return np.asarray(self.samples[row].boxes, dtype=np.float64).reshape(-1, 4)

    def size(self, row: int) -> tuple[int, int]:
        return self.samples[row].size or (0, 0)

    def segmentation_path(self, row: int) -> Path | None:
        return self.samples[row].segmentation_path

    def unreadable(self, row: int) -> bool:
        return self.samples[row].size is None

    def unreadable_images(self) -> list[str]:
        return [s.name for s in self.samples if s.size is None]

    def check(self, known: DataIndex, any_range: bool) -> tuple[list[str], list[str]]:
        """(what cannot be scored, the names of the constant maps), each in full.

        any_range: whether values outside [0, 1] are welcome, because a normalisation follows. A file that
        belongs to no image of the data set is a fault too: it may be a misnamed one.
        """
        faults: list[str] = []
        constant: list[str] = []

        def look(row: int) -> tuple[str | None, bool]:
            return inspect_map(self.path(row), any_range)

        for sample, (fault, flat) in zip(self.samples, in_threads(look, range(len(self))), strict=True):
            if fault:
                faults.append(f"{self.folder / sample.name}.npy: {fault}")
            if flat:
                constant.append(sample.name)
        names = {f"{s.name}.npy" for s in known.samples}
        for path in sorted(self.folder.rglob("*.npy")):
            if path.relative_to(self.folder).as_posix() not in names:
                faults.append(f"{path}: no image of {known.root} has this name")
        return faults, constant


def read_map(path: Path) -> FloatMap:
    """The map in a .npy file; half precision becomes float32, since OpenCV takes no other."""
    raw: FloatMap = np.load(path, allow_pickle=False)
    return raw.astype(np.float32) if raw.dtype == np.float16 else raw


def inspect_map(source: Path | NDArray[Any], any_range: bool) -> tuple[str | None, bool]:
    """(why a map cannot be scored, whether it is constant)."""
    raw: Any = source
    if isinstance(source, Path):
        if not source.is_file():
            return "missing", False
        if source.stat().st_size == 0:
            return "empty file", False
        try:
            raw = np.load(source, allow_pickle=False)
        except Exception as error:  # a damaged header makes NumPy raise nearly anything
            return f"not a .npy file that can be read ({' '.join(str(error).split())})", False
    if not isinstance(raw, np.ndarray) or not np.issubdtype(raw.dtype, np.floating):
        return f"expected floating point values, got {getattr(raw, 'dtype', 'an archive')}", False
    if raw.ndim != 2 or raw.size == 0:
        return f"expected height x width, got the shape {raw.shape}", False
    if not np.isfinite(raw).all():
        return f"{np.count_nonzero(~np.isfinite(raw))} values are NaN or infinite", False
    if not any_range and (raw.min() < 0 or raw.max() > 1):
        found = f"{raw.min():.4g} to {raw.max():.4g}"
        return f"expected values in [0, 1], got {found}; --normalize minmax would make them so", False
    return None, is_constant(raw)
