"""The photos of the report's gallery: inside the page, as large as its limit allows, or files beside it.

One picture of each photo serves the gallery and the enlarged view. No picture is larger than its photo.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from wsol.data.image import in_threads, read_image
from wsol.errors import DataError
from wsol.runs.files import replacing
from wsol.views.output_folder import file_name

SAMPLES = 24  # photos that are encoded to estimate the size of all


@dataclass(frozen=True)
class PictureSize:
    """side: the longest in pixels. quality: WebP's, from 0 to 100."""

    side: int
    quality: int


LARGE = 640  # what an enlarged picture should have
STEPS = ((960, 80), (LARGE, 75), (LARGE, 60), (LARGE, 45), (448, 50), (256, 62))
INSIDE = tuple(PictureSize(*step) for step in STEPS)  # from the best to the smallest
THUMBNAIL = INSIDE[-1]
BESIDE = PictureSize(1600, 85)


def choose_size(paths: Sequence[Path], budget: float) -> PictureSize:
    """The best size whose pictures, in base64, fit into `budget` bytes altogether; else the smallest.

    Estimated from photos taken evenly.
    """
    if not paths:
        return THUMBNAIL
    places = np.unique(np.linspace(0, len(paths) - 1, SAMPLES).round().astype(int)).tolist()
    for size in INSIDE[:-1]:
        encoded = list(in_threads(partial(encode, size=size), [paths[i] for i in places]))
        if len(paths) * sum(4 / 3 * len(content) for content in encoded) / len(places) <= budget:
            return size
    return THUMBNAIL


def encode(path: Path, size: PictureSize) -> bytes:
    """The photo as WebP, shrunk to the size and never enlarged; a grey square where it cannot be read."""
    try:
        photo = Image.fromarray(read_image(path, at_least=size.side))
    except DataError:
        photo = Image.new("RGB", (8, 8), (128, 128, 128))
    photo.thumbnail((size.side, size.side), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    photo.save(file, "WEBP", quality=size.quality, method=2)
    return file.getvalue()


def data_uris(paths: Sequence[Path], size: PictureSize) -> list[str]:
    """Each photo as a data URI."""
    head = "data:image/webp;base64,"
    return [head + base64.b64encode(p).decode() for p in in_threads(partial(encode, size=size), paths)]


def write_pictures(paths: Sequence[Path], folder: Path) -> list[str]:
    """Each photo as a file of the folder, up to the size `BESIDE`; returns the names of the files."""
    names = [file_name(f"{i:05d}_{path.stem}", ".webp", 80) for i, path in enumerate(paths)]
    for name, content in zip(names, in_threads(partial(encode, size=BESIDE), paths), strict=True):
        with replacing(folder / name) as draft:
            draft.write_bytes(content)
    return names
