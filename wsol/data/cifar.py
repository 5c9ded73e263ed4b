"""CIFAR-10 and CIFAR-100 in their published files: the archives "python version", as folders of images.

The archives hold pickles. They are read by `_Unpickler`, which knows arrays of NumPy and nothing else, so
that no code of a file runs; and only after the archive's SHA-256 is found to be that of the published one.
"""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from tqdm import tqdm

from wsol.errors import DataError

SIDE = 32
MARK = "published.txt"  # in the folder of images: which data set it is, and what it was made from


@dataclass(frozen=True)
class PublishedCifar:
    """One of the two data sets.

    folder: that the archive unpacks to. train, test, meta: its files. labels, classes: keys of the pickles.
    counts: images of the train files together, and of the test file.
    """

    name: str
    archive: str
    sha256: str
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    meta: str
    labels: str
    classes: str
    counts: tuple[int, int] = (50_000, 10_000)


CIFAR10 = PublishedCifar(
    name="cifar10",
    archive="cifar-10-python.tar.gz",
    sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    folder="cifar-10-batches-py",
    train=tuple(f"data_batch_{number}" for number in range(1, 6)),
    test=("test_batch",),
    meta="batches.meta",
    labels="labels",
    classes="label_names",
)

CIFAR100 = PublishedCifar(
    name="cifar100",
    archive="cifar-100-python.tar.gz",
    sha256="85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    folder="cifar-100-python",
    train=("train",),
    test=("test",),
    meta="meta",
    labels="fine_labels",
    classes="fine_label_names",
)

PUBLISHED = (CIFAR10, CIFAR100)


def find_cifar(folder: Path) -> PublishedCifar | None:
    """Which of the two was unpacked into a folder; None for any other data."""
    return next((kind for kind in PUBLISHED if (folder / kind.folder / kind.meta).is_file()), None)


def prepared_kind(root: Path) -> str | None:
    """`cifar10` or `cifar100` where the folder was made by `write_images`; None for any other folder."""
    mark = root / MARK
    if not mark.is_file():
        return None
    first = mark.read_text(encoding="utf-8", errors="replace").partition(" ")[0]
    return first if first in {kind.name for kind in PUBLISHED} else None


def require_published(kind: PublishedCifar, archive: Path) -> None:
    """Raise where an archive is not the published one, bit for bit."""
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != kind.sha256:
        raise DataError(
            f"{archive}: not the published {kind.archive}: its SHA-256 begins with {digest[:12]}, and "
            f"should begin with {kind.sha256[:12]}; get it again"
        )


def write_images(kind: PublishedCifar, unpacked: Path, out: Path) -> None:
    """The images of an unpacked archive as OUT/train/CLASS/00000.png and OUT/test/CLASS/00000.png.

    The numbers are the places in the published order.
    """
    source = unpacked / kind.folder
    classes = _class_names(_read(source / kind.meta), kind.classes, source / kind.meta)
    splits = {"train": kind.train, "test": kind.test}
    bar = tqdm(total=sum(kind.counts), unit=" images", desc=f"writing {kind.name}", disable=None)
    with bar:
        for (split, files), expected in zip(splits.items(), kind.counts, strict=True):
            number = 0
            for name in classes:
                (out / split / name).mkdir(parents=True)
            for file in files:
                images, labels = _images(source / file, kind.labels, len(classes))
                for image, label in zip(images, labels, strict=True):
                    path = out / split / classes[label] / f"{number:05d}.png"
                    Image.fromarray(image).save(path, compress_level=1)
                    number += 1
                bar.update(len(labels))
            if number != expected:
                raise DataError(f"{source}: {number} {split} images, expected {expected}")
    text = f"{kind.name} in its published order, made from {kind.archive}, SHA-256 {kind.sha256}\n"
    (out / MARK).write_text(text, encoding="utf-8")


def _images(path: Path, key: str, classes: int) -> tuple[NDArray[np.uint8], list[int]]:
    """The images (N, 32, 32, 3) and labels of one file."""
    content = _read(path)
    data, labels = content.get("data"), content.get(key)
    right = (
        isinstance(data, np.ndarray)
        and data.dtype == np.uint8
        and data.ndim == 2
        and data.shape[1] == 3 * SIDE * SIDE
        and isinstance(labels, list)
        and len(labels) == len(data)
        and all(type(label) is int and 0 <= label < classes for label in labels)
    )
    if not right:
        raise DataError(f"{path}: expected 'data' of uint8 (N, 3072), and N labels in {key!r}")
    images = np.asarray(data).reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), list(labels or [])


def _class_names(content: Mapping[str, Any], key: str, path: Path) -> list[str]:
    names = content.get(key)
    plain = isinstance(names, list) and all(
        isinstance(name, str) and re.fullmatch(r"[a-z][a-z_]*", name) for name in names
    )
    if not plain or not names or len(set(names)) != len(names):
        raise DataError(f"{path}: expected plain class names in {key!r}")
    return list(names)


def _read(path: Path) -> Mapping[str, Any]:
    """What a pickle holds, without running code from it."""
    try:
        with path.open("rb") as file:
            # The files were written by Python 2: its texts are bytes, which latin1 keeps one by one.
            content = _Unpickler(file, encoding="latin1").load()
    except FileNotFoundError:
        raise DataError(f"{path}: missing in the archive") from None
    except Exception as error:  # on damaged bytes the reader raises whatever it meets
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path}: refused: {reason[:120]}") from None
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a table of named values, got {type(content).__name__}")
    return content


class _Unpickler(pickle.Unpickler):
    """Reads plain values and NumPy arrays, which is all that the published files hold; refuses all else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ALLOWED:
            return _ALLOWED[module, name]
        raise pickle.UnpicklingError(f"the pickle asks for {module}.{name}, which could run code")


def _empty_array(kind: object, shape: tuple[int, ...], code: str) -> NDArray[Any]:
    """What NumPy's pickles call first: an array that the state then fills."""
    if kind is not np.ndarray or tuple(shape) != (0,):
        raise pickle.UnpicklingError("not a plain array")
    return np.ndarray((0,), dtype=code)


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}
