"""Predictions on disk: what a localizer said of every image of a split, once, for everything that follows.

A folder of plain arrays, one row for each image in the order of the data set::

    meta.json       names, classes, view, sides, data digest, truth boxes, masks, what was left unreadable
    labels.npy      int64   (N,)
    sizes.npy       int32   (N, 2)        width, height of the original; 0 where it is unknown
    flags.npy       uint8   (N,)          see `Flag`
    scores.npy      float32 (N, C)        logits
    maps.npy        float32 (N, 2, h, w)  raw maps of the true class and of the best class
    masks.npy       float32 (N, C)        attention masks, only where the model has some

The arrays are mapped into memory, never read whole, so memory does not grow with the number of images.
Several processes may write one folder: each writes the rows that it computed, no row twice. The folder
carries the suffix `.partial` until every row is there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import IntFlag
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wsol.data.transforms import View, ViewKind
from wsol.errors import DataError
from wsol.records import DataIndex, Sample

FORMAT = 1


class Flag(IntFlag):
    """What is to be known of one row."""

    WRITTEN = 1
    UNREADABLE = 2  # the image could not be decoded: a miss, whatever the model said of the black square
    NOT_FINITE = 4  # the map of the true class holds NaN or infinity
    CONSTANT = 8  # the map of the true class has one value everywhere


FAULTS = {
    "unreadable_images": Flag.UNREADABLE,
    "not_finite_maps": Flag.NOT_FINITE,
    "constant_maps": Flag.CONSTANT,
}


@dataclass(frozen=True)
class Header:
    """What holds for the whole folder. `boxes` are the truth boxes of each image, in original pixels."""

    data: str
    root: str
    digest: str
    split: str
    view: ViewKind
    side: int
    classes: tuple[str, ...]
    names: tuple[str, ...]
    boxes: tuple[tuple[tuple[float, float, float, float], ...], ...]
    segmentation_paths: tuple[str | None, ...]
    origin: str = ""  # the checkpoint, in words
    format: int = FORMAT

    @classmethod
    def of(cls, index: DataIndex, samples: Sequence[Sample], split: str, view: View, origin: str) -> Header:
        return cls(
            data=index.name,
            root=str(index.root),
            digest=index.digest(),
            split=split,
            view=view.kind,
            side=view.side,
            classes=index.classes,
            names=tuple(s.name for s in samples),
            boxes=tuple(tuple(tuple(map(float, b)) for b in s.boxes) for s in samples),  # type: ignore[misc]
            segmentation_paths=tuple(
                str(s.segmentation_path) if s.segmentation_path else None for s in samples
            ),
            origin=origin,
        )


class PredictionsWriter:
    """Writes rows of one folder; every process that takes part makes one of its own.

    The process that calls `start` removes what a former attempt left and writes what holds for all rows.
    After all processes have written theirs, the same one calls `finish`.
    """

    def __init__(self, folder: Path, header: Header) -> None:
        self.folder = folder
        self.partial = folder.with_name(folder.name + ".partial")
        self.header = header
        self._arrays: dict[str, NDArray[Any]] = {}

    def start(self, labels: Sequence[int], sizes: Sequence[tuple[int, int] | None]) -> None:
        if self.partial.exists():
            shutil.rmtree(self.partial)
        self.partial.mkdir(parents=True)
        (self.partial / "meta.json").write_text(json.dumps(asdict(self.header)))
        np.save(self.partial / "labels.npy", np.asarray(labels, dtype=np.int64))
        known = [size or (0, 0) for size in sizes]
        np.save(self.partial / "sizes.npy", np.asarray(known, dtype=np.int32).reshape(-1, 2))

    def write(
        self,
        rows: NDArray[np.int64],
        scores: NDArray[np.float32],
        maps: NDArray[np.float32],
        failed: NDArray[np.bool_],
        masks: NDArray[np.float32] | None = None,
    ) -> None:
        """rows: (n,) positions. scores: (n, C). maps: (n, 2, h, w). failed: (n,). masks: (n, C)."""
        true_maps = maps[:, 0].reshape(len(maps), -1)
        finite = np.isfinite(true_maps).all(axis=1)
        flags = np.full(len(rows), int(Flag.WRITTEN), dtype=np.uint8)
        flags |= np.where(failed, Flag.UNREADABLE, 0).astype(np.uint8)
        flags |= np.where(~finite, Flag.NOT_FINITE, 0).astype(np.uint8)
        constant = finite & (true_maps.max(axis=1) == true_maps.min(axis=1))
        flags |= np.where(constant, Flag.CONSTANT, 0).astype(np.uint8)
        values: dict[str, NDArray[Any]] = {"scores": scores, "maps": maps}
        if masks is not None:
            values["masks"] = masks
        for name, value in (values | {"flags": flags}).items():  # flags last: they say that a row is there
            self._array(name, value)[rows] = value

    def finish(self) -> Predictions:
        """Make the folder visible under its own name; every row must be there."""
        num = len(self.header.names)
        flags = self.partial / "flags.npy"
        missing = num - (np.count_nonzero(np.load(flags) & Flag.WRITTEN) if flags.exists() else 0)
        if missing:
            raise DataError(f"{self.partial}: {missing} of {num} images were not predicted")
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self.partial.rename(self.folder)
        return Predictions(self.folder)

    def _array(self, name: str, value: NDArray[Any]) -> NDArray[Any]:
        if name not in self._arrays:
            shape = (len(self.header.names), *value.shape[1:])
            self._arrays[name] = _shared_array(self.partial / f"{name}.npy", value.dtype, shape)
        return self._arrays[name]


def _shared_array(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A mapped .npy file that several processes may open at once, whoever comes first.

    Nobody truncates what is there and all write the same header bytes, so no lock is needed.
    """
    header = np.lib.format.header_data_from_array_1_0(np.empty((0,), dtype)) | {"shape": shape}
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
        np.lib.format.write_array_header_1_0(file, header)
        offset = file.tell()
        file.truncate(offset + dtype.itemsize * int(np.prod(shape)))
    return np.memmap(path, dtype=dtype, mode="r+", offset=offset, shape=shape)


class Predictions:
    """A finished folder, read only. Arrays are mapped when they are first asked for."""

    same_map = False

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        try:
            meta = json.loads((self.folder / "meta.json").read_text())
        except (OSError, ValueError):
            raise DataError(f"{self.folder}: no predictions here; run `wsol evaluate`") from None
        if meta.get("format") != FORMAT:
            raise DataError(f"{self.folder}: predictions of format {meta.get('format')}, expected {FORMAT}")
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in meta.items()}
        self.header = Header(**values)
        self.labels: NDArray[np.int64] = np.array(self._load("labels"))
        if len(self.labels) != len(self.header.names):
            raise DataError(f"{self.folder}: {len(self.labels)} rows for {len(self.header.names)} images")

    def __reduce__(self) -> tuple[Any, ...]:
        return Predictions, (self.folder,)  # another process maps the files for itself

    def __len__(self) -> int:
        return len(self.header.names)

    @property
    def names(self) -> tuple[str, ...]:
        return self.header.names

    @property
    def classes(self) -> tuple[str, ...]:
        return self.header.classes

    @property
    def view(self) -> View:
        return View(self.header.view, self.header.side)

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        return np.array(self._load("sizes"))  # a few bytes for each image, and asked for row by row

    @cached_property
    def flags(self) -> NDArray[np.uint8]:
        return np.array(self._load("flags"))

    @cached_property
    def scores(self) -> NDArray[np.float32]:
        return self._load("scores")

    @cached_property
    def maps(self) -> NDArray[np.float32]:
        return self._load("maps")

    @cached_property
    def masks(self) -> NDArray[np.float32] | None:
        return self._load("masks") if (self.folder / "masks.npy").is_file() else None

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """(N,) how many classes score higher than the true one; between equal scores the lower index leads.

        An image that could not be read has the worst rank: whatever was said of it does not count.
        """
        ranks = class_ranks(self.scores, self.labels)
        ranks[(self.flags & Flag.UNREADABLE) > 0] = self.scores.shape[1]
        return ranks

    def raw_map(self, row: int) -> NDArray[np.float64]:
        """The raw map (h, w) of the true class. In double precision, in which peers resize and normalise."""
        return self.maps[row, 0].astype(np.float64)

    def truths(self, row: int) -> NDArray[np.float64]:
        """(m, 4) the truth boxes in pixels of the original."""
        return np.asarray(self.header.boxes[row], dtype=np.float64).reshape(-1, 4)

    def size(self, row: int) -> tuple[int, int]:
        width, height = self.sizes[row].tolist()
        return width, height

    def segmentation_path(self, row: int) -> Path | None:
        path = self.header.segmentation_paths[row]
        return Path(path) if path else None

    def unreadable(self, row: int) -> bool:
        return bool(self.flags[row] & Flag.UNREADABLE)

    def faults(self) -> dict[str, list[str]]:
        """The names of the images with each kind of fault."""
        return {
            kind: [self.names[i] for i in np.flatnonzero(self.flags & flag).tolist()]
            for kind, flag in FAULTS.items()
        }

    def require(self, index: DataIndex) -> None:
        """Raise where these are predictions of another data set."""
        if self.header.digest != index.digest():
            raise DataError(
                f"{self.folder}: predictions of another data set ({self.header.data}, digest "
                f"{self.header.digest[:12]}, not {index.digest()[:12]}); run `wsol evaluate` again"
            )

    def _load(self, name: str) -> NDArray[Any]:
        path = self.folder / f"{name}.npy"
        try:
            return cast(NDArray[Any], np.load(path, mmap_mode="r"))
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path}: damaged predictions ({error}); run `wsol evaluate` again") from None


def class_ranks(scores: NDArray[np.floating], labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """(N,) the position of the true class when classes are sorted by score, in chunks of bounded memory."""
    ranks = np.zeros(len(labels), dtype=np.int64)
    columns = np.arange(scores.shape[1])
    for start in range(0, len(labels), 4096):
        part = np.nan_to_num(np.asarray(scores[start : start + 4096]), nan=-np.inf)
        own = np.asarray(labels[start : start + 4096])[:, None]
        true = np.take_along_axis(part, own, axis=1)
        ahead = (part > true) | ((part == true) & (columns < own))
        ranks[start : start + 4096] = ahead.sum(axis=1)
    return ranks
