"""Photos that users bring: which files are meant, and how they are read in batches."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from wsol.data.image import SUFFIXES, image_sizes, in_threads, read_image
from wsol.data.walk import walk
from wsol.errors import DataError

BATCH, MEGAPIXELS = 16, 100


def list_photos(arguments: Sequence[Path]) -> tuple[dict[str, Path], dict[str, str]]:
    """The files that the arguments mean, by the name under which results are written; and the folders and
    links that cannot be read, with the reason.

    A file is itself. A folder is every picture below it, in the order of their names; hidden ones are left
    out, links are followed. A name that is taken gets a number.
    """
    photos: dict[str, Path] = {}
    unreadable: dict[str, str] = {}
    for argument in arguments:
        if not argument.is_dir():
            photos[_free(argument.name, photos)] = argument
            continue
        found = walk(argument)
        below = sorted(argument / name for name in found.images)
        if not below and not found.unreadable:
            raise DataError(f"{argument}: no pictures in this folder ({', '.join(sorted(SUFFIXES))})")
        for path in below:
            photos[_free(path.relative_to(argument).as_posix(), photos)] = path
        for path, reason in found.unreadable.items():
            unreadable[str(path)] = str(DataError.at(path, None, reason))
    return photos, unreadable


def photo_stamp(path: Path) -> str:
    """What changes when the file of a photo is changed or another one is taken: its path, size and time.

    '' where there is no such file.
    """
    try:
        found = path.stat()
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return ""
    return f"{found.st_size} {found.st_mtime_ns} {path.resolve()}"


@contextlib.contextmanager
def quiet_decoder() -> Iterator[None]:
    """Without Pillow's warnings: a large photo is fine here, and a damaged one raises an error of its own.

    Filters belong to the whole process, so this stands around threads that read, not inside them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def batch_photos(photos: Mapping[str, Path]) -> Iterator[dict[str, Path]]:
    """The photos in batches that fit into memory: at most BATCH of them and about MEGAPIXELS in all."""
    batch: dict[str, Path] = {}
    pixels = 0
    with quiet_decoder():
        sizes = image_sizes(photos.values())
    for (name, path), size in zip(photos.items(), sizes, strict=True):
        more = size[0] * size[1] if size else 0
        if batch and (len(batch) == BATCH or pixels + more > MEGAPIXELS * 1_000_000):
            yield batch
            batch, pixels = {}, 0
        batch[name] = path
        pixels += more
    if batch:
        yield batch


def read_photos(photos: Mapping[str, Path]) -> tuple[dict[str, NDArray[np.uint8]], dict[str, str]]:
    """The photos that can be read, and for each of the others why it cannot, both by name."""

    def read(path: Path) -> NDArray[np.uint8] | DataError:
        try:
            return read_image(path)
        except DataError as error:
            return error

    with quiet_decoder():
        results = list(in_threads(read, photos.values()))
    images, errors = {}, {}
    for name, result in zip(photos, results, strict=True):
        if isinstance(result, DataError):
            errors[name] = str(result)
        else:
            images[name] = result
    return images, errors


def _free(name: str, taken: Mapping[str, Path]) -> str:
    if name not in taken:
        return name
    suffix = Path(name).suffix
    stem = name.removesuffix(suffix)
    number = next(n for n in range(2, len(taken) + 3) if f"{stem}-{n}{suffix}" not in taken)
    return f"{stem}-{number}{suffix}"
