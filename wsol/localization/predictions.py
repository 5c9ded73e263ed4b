"""Predictions on disk: what a localizer said of every image of a split. Everything later reads this.

A folder of plain arrays, one row for each image in the order of the data set::

    meta.json       names, files, classes, view, data digest, checkpoint digest, truth boxes, segmentations
    labels.npy      int64   (N,)
    sizes.npy       int32   (N, 2)        width, height of the original; 0 where it is unknown
    flags.npy       uint8   (N,)          see `Flag`
    scores.npy      float32 (N, C)        logits; of ten crops their mean probabilities
    maps.npy        float32 (N, K, h, w)  raw maps of the true class, of the best class, and of the best
                                          class by ten crops where these were made; none of the crops
    masks.npy       float32 (N, C)        attention masks, only where the model has some

The arrays are mapped into memory, never read whole, so memory does not grow with the number of images.
Several processes may write one folder: each writes the rows that it computed, no row twice. They write to a
draft beside it. When every row is written, the draft and the former predictions exchange their names.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import IntFlag
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from wsol.data.transforms import View, ViewKind
from wsol.errors import DataError, RunFolderError
from wsol.records import DataIndex, Sample, digest_truths
from wsol.runs.files import read_regular, replace_folder

FORMAT = 3
# The type and the number of axes of each array; the first axis is that of the images.
ARRAYS = {
    "labels": ("int64", 1),
    "sizes": ("int32", 2),
    "flags": ("uint8", 1),
    "scores": ("float32", 2),
    "maps": ("float32", 4),
    "masks": ("float32", 2),
}

ClassesBy = Literal["view", "ten crops"]  # what ranked the classes: the test image of the maps, or ten crops


class Flag(IntFlag):
    """What was special about one image."""

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
    """What holds for the whole folder.

    paths: the image files, relative to `root` where they lie below it. boxes: the truth boxes of each image,
    in original pixels. origin: the checkpoint in words; checkpoint: its SHA-256 digest. classes_by: what the
    scores are of: the one test image that `view` names, or ten crops. cut, knows_classes: of the head, see
    `wsol.models.heads.head.Head`.
    """

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
    paths: tuple[str, ...] = ()  # predictions of format 1 have none
    origin: str = ""
    checkpoint: str = ""
    classes_by: ClassesBy = "view"
    cut: float | None = None
    knows_classes: bool = True
    format: int = FORMAT

    @classmethod
    def of(
        cls,
        index: DataIndex,
        samples: Sequence[Sample],
        split: str,
        view: View,
        origin: str = "",
        checkpoint: str = "",
        classes_by: ClassesBy = "view",
        cut: float | None = None,
        knows_classes: bool = True,
    ) -> Header:
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
            paths=tuple(_below(s.path, index.root) for s in samples),
            origin=origin,
            checkpoint=checkpoint,
            cut=cut,
            knows_classes=knows_classes,
            classes_by=classes_by,
        )

    @classmethod
    def from_json(cls, meta: dict[str, Any]) -> Header:
        """What meta.json holds, also in the format before, which had no paths."""
        if "mask_paths" in meta:
            meta["segmentation_paths"] = meta.pop("mask_paths")
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in meta.items()}
        return cls(**values)


def _below(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


class PredictionsWriter:
    """Writes rows of one folder; every process that takes part makes one of its own, with the same draft.

    draft: a folder from `wsol.runs.files.new_draft_folder`. One process calls `start`, and, after all have
    written their rows, `finish`.
    """

    def __init__(self, folder: Path, draft: Path, header: Header) -> None:
        self.folder = folder
        self.draft = draft
        self.header = header
        self._arrays: dict[str, NDArray[Any]] = {}

    def start(self, labels: Sequence[int], sizes: Sequence[tuple[int, int] | None]) -> None:
        """Write what holds for all rows."""
        known = [size or (0, 0) for size in sizes]
        try:
            (self.draft / "meta.json").write_text(json.dumps(asdict(self.header)))
            np.save(self.draft / "labels.npy", np.asarray(labels, dtype=np.int64))
            np.save(self.draft / "sizes.npy", np.asarray(known, dtype=np.int32).reshape(-1, 2))
        except OSError as error:
            raise self._failed(error) from None

    def write(
        self,
        rows: NDArray[np.int64],
        scores: NDArray[np.float32],
        maps: NDArray[np.float32] | None,
        failed: NDArray[np.bool_],
        masks: NDArray[np.float32] | None = None,
    ) -> None:
        """rows: (n,) positions. scores: (n, C). maps: (n, K, h, w). failed: (n,). masks: (n, C)."""
        flags = np.full(len(rows), int(Flag.WRITTEN), dtype=np.uint8)
        flags |= np.where(failed, Flag.UNREADABLE, 0).astype(np.uint8)
        values: dict[str, NDArray[Any]] = {"scores": scores}
        if maps is not None:
            values["maps"] = maps
            true_maps = maps[:, 0].reshape(len(maps), -1)
            finite = np.isfinite(true_maps).all(axis=1)
            flags |= np.where(~finite, Flag.NOT_FINITE, 0).astype(np.uint8)
            constant = finite & (true_maps.max(axis=1) == true_maps.min(axis=1))
            flags |= np.where(constant, Flag.CONSTANT, 0).astype(np.uint8)
        if masks is not None:
            values["masks"] = masks
        for name, value in (values | {"flags": flags}).items():  # flags last: they mark a row as written
            self._array(name, value)[rows] = value

    def finish(self) -> Predictions:
        """Make the folder visible under its own name; every row must be there."""
        num = len(self.header.names)
        flags = self.draft / "flags.npy"
        missing = num - (np.count_nonzero(np.load(flags) & Flag.WRITTEN) if flags.exists() else 0)
        if missing:
            raise DataError(f"{self.folder}: {missing} of {num} images were not predicted")
        replace_folder(self.draft, self.folder)
        return Predictions(self.folder)

    def _array(self, name: str, value: NDArray[Any]) -> NDArray[Any]:
        if name not in self._arrays:
            shape = (len(self.header.names), *value.shape[1:])
            try:
                self._arrays[name] = _shared_array(self.draft / f"{name}.npy", value.dtype, shape)
            except OSError as error:
                raise self._failed(error) from None
        return self._arrays[name]

    def _failed(self, error: OSError) -> RunFolderError:
        kept = "; the former predictions are intact" if self.folder.exists() else ""
        return RunFolderError(f"{self.folder}: cannot be written: {error.strerror}{kept}")


def _shared_array(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A mapped .npy file that several processes may open at once, in any order.

    No process truncates the file and all write the same header bytes, so no lock is needed. Its space on the
    disk is reserved at once: a full disk is then an error here, and not a crash when the memory is written.
    """
    header = np.lib.format.header_data_from_array_1_0(np.empty((0,), dtype)) | {"shape": shape}
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o644), "r+b") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        offset = file.tell()
        length = offset + dtype.itemsize * int(np.prod(shape))
        try:
            os.posix_fallocate(file.fileno(), 0, length)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            file.truncate(length)  # a file system that cannot reserve space
    return np.memmap(path, dtype=dtype, mode="r+", offset=offset, shape=shape)


class Predictions:
    """A finished folder, read only. Arrays are mapped when they are first asked for.

    crops: the folder of the ten crops of the same images, where classes are to be ranked by these.
    """

    same_map = False

    def __init__(self, folder: Path, crops: Path | None = None) -> None:
        self.folder = Path(folder)
        self._voters = None if crops is None else Predictions(crops)
        try:
            meta = json.loads(read_regular(self.folder / "meta.json"))
        except (OSError, ValueError, RecursionError):
            raise DataError(f"{self.folder}: no predictions here; run `wsol evaluate`") from None
        known = isinstance(meta, dict) and meta.get("format") in range(1, FORMAT + 1)
        if not known:
            found = meta.get("format") if isinstance(meta, dict) else None
            raise DataError(f"{self.folder}: predictions of format {found}, expected up to {FORMAT}")
        try:
            self.header = Header.from_json(meta)
        except (TypeError, ValueError) as error:
            raise DataError(f"{self.folder}: damaged predictions ({error}); evaluate again") from None
        self.labels: NDArray[np.int64] = np.array(self._load("labels"))
        if not ((self.labels >= 0) & (self.labels < len(self.header.classes))).all():
            raise DataError(f"{self.folder}: labels of no class; run `wsol evaluate` again")
        if self._voters is not None:
            if self._voters.header.names != self.header.names:
                raise DataError(f"{self._voters.folder}: not of the images of {self.folder}; evaluate again")
            if self.maps.shape[1] <= self.best_map:
                raise DataError(f"{self.folder}: older than its ten crops; run `wsol evaluate` again")

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process maps the files for itself.
        return type(self), (self.folder, None if self._voters is None else self._voters.folder)

    @property
    def parts(self) -> tuple[Predictions, ...]:
        """These predictions, and those of the ten crops where classes are ranked by them."""
        return (self,) if self._voters is None else (self, self._voters)

    @property
    def classes_by(self) -> ClassesBy | None:
        """What ranked the classes; None where the head knows none."""
        if not self.header.knows_classes:
            return None
        return self.header.classes_by if self._voters is None else self._voters.header.classes_by

    def __len__(self) -> int:
        return len(self.header.names)

    @property
    def names(self) -> tuple[str, ...]:
        return self.header.names

    @property
    def classes(self) -> tuple[str, ...]:
        return self.header.classes

    @property
    def cut(self) -> float | None:
        """Where the head cuts its raw maps itself; None where thresholds do."""
        return self.header.cut

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
        """(N, C) what classes are ranked by: logits, or the mean probabilities of ten crops."""
        return self._load("scores") if self._voters is None else self._voters.scores

    @cached_property
    def maps(self) -> NDArray[np.float32]:
        return self._load("maps")

    @cached_property
    def masks(self) -> NDArray[np.float32] | None:
        return self._load("masks") if (self.folder / "masks.npy").is_file() else None

    @cached_property
    def probabilities(self) -> NDArray[np.float32]:
        """(N, C) softmax of the logits, or its mean over ten crops."""
        if self.classes_by == "ten crops":
            return np.nan_to_num(np.asarray(self.scores))
        logits = np.nan_to_num(np.asarray(self.scores, dtype=np.float64))
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        """(N,) the best class of each image, -1 where it could not be read.

        Where the head knows no classes, the true class: it is given, not predicted.
        """
        best = self.scores.argmax(axis=1) if self.header.knows_classes else self.labels
        return np.where((self.flags & Flag.UNREADABLE) > 0, -1, best)

    @cached_property
    def ranks(self) -> NDArray[np.int64] | None:
        """(N,) how many classes score higher than the true one; between equal scores the lower index leads.

        An image that could not be read has the worst rank: whatever was said of it does not count. None where
        the head knows no classes.
        """
        if not self.header.knows_classes:
            return None
        ranks = class_ranks(self.scores, self.labels)
        ranks[(self.flags & Flag.UNREADABLE) > 0] = self.scores.shape[1]
        return ranks

    def raw_map(self, row: int) -> NDArray[np.float64]:
        """The raw map (h, w) of the true class. In double precision, in which peers resize and normalise."""
        return self.maps[row, 0].astype(np.float64)

    @property
    def best_map(self) -> int:
        """Which of the maps of an image is that of its best class, by whatever ranked the classes."""
        return 1 if self._voters is None else 2

    def truths(self, row: int) -> NDArray[np.float64]:
        """(m, 4) the truth boxes in pixels of the original."""
        return np.asarray(self.header.boxes[row], dtype=np.float64).reshape(-1, 4)

    def size(self, row: int) -> tuple[int, int]:
        width, height = self.sizes[row].tolist()
        return width, height

    def image_path(self, row: int, root: Path | None = None) -> Path:
        """The image file. root: where the data set is now, if it was moved."""
        return Path(root or self.header.root) / self.header.paths[row]

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

    def test_digest(self) -> str:
        """What identifies these images and their truth; see `wsol.records.digest_truths`."""
        rows = zip(self.names, self.labels.tolist(), self.header.boxes, strict=True)
        return digest_truths(self.classes, rows)

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
            if not path.is_file():
                raise OSError("no such file")
            array = cast(NDArray[Any], np.load(path, mmap_mode="r"))
            dtype, axes = ARRAYS[name]
            if array.dtype != dtype or array.ndim != axes or len(array) != len(self.header.names):
                rows = len(self.header.names)
                raise ValueError(f"{array.dtype} {array.shape}, not {dtype} with {axes} axes and {rows} rows")
            return array
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path}: damaged predictions ({error}); run `wsol evaluate` again") from None


class OtherClassMaps(Predictions):
    """The images whose best class is not the true one, with the map of that class; the others are passed
    over as if they could not be read."""

    def raw_map(self, row: int) -> NDArray[np.float64]:
        return self.maps[row, self.best_map].astype(np.float64)

    def unreadable(self, row: int) -> bool:
        assert self.ranks is not None, "no classes were predicted"
        return bool(self.ranks[row] == 0) or super().unreadable(row)


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
