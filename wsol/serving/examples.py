"""Photos to try the page with."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from wsol.data.image import decode_image
from wsol.data.photos import list_photos, quiet_decoder
from wsol.data.regular_file import require_regular
from wsol.data.synthetic.paint import paint_picture
from wsol.data.synthetic.species import roster
from wsol.data.take_evenly import take_evenly
from wsol.errors import DataError, WsolError
from wsol.run import Run
from wsol.serving.answers import jpeg_url
from wsol.serving.limits import LARGEST_PIXELS, LARGEST_UPLOAD, THUMBNAIL_SIDE

NUMBER = 8
PAINTED_SIDE = 320


@dataclass(frozen=True)
class Example:
    """A photo that is offered on the page. thumbnail: a small picture of it, as an address that holds it."""

    name: str
    content: bytes
    thumbnail: str

    @classmethod
    def of(cls, name: str, content: bytes) -> Example:
        with quiet_decoder():
            pixels = decode_image(content, LARGEST_PIXELS)
        return cls(name, content, jpeg_url(pixels, THUMBNAIL_SIDE))


def given_examples(photos: Sequence[Path]) -> list[Example]:
    """Those of the user: files, or folders of them. One that cannot be read raises."""
    listed, unreadable = list_photos(photos)
    for reason in unreadable.values():
        raise DataError(reason)
    chosen = take_evenly(list(listed.items()), NUMBER)
    return [_from_file(name, path) for name, path in chosen]


def examples_of_run(run: Run) -> list[Example]:
    """Some test images of an evaluated run; [] where it is not evaluated or its images are gone."""
    try:
        predictions = run.predictions("test", run.protocol().view)
        paths = take_evenly(run.image_paths(predictions), NUMBER)
        return [_from_file(path.name, path) for path in paths]
    except WsolError:
        return []


def painted_examples() -> list[Example]:
    """Birds that are painted now, for models that bring no photos."""
    examples = []
    for number, species in enumerate(take_evenly(roster(3 * NUMBER), NUMBER)):
        pixels, _ = paint_picture(np.random.default_rng([1, number]), species, PAINTED_SIDE)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=92)
        examples.append(Example.of(f"painted-bird-{number + 1}.jpg", file.getvalue()))
    return examples


def _from_file(name: str, path: Path) -> Example:
    try:
        require_regular(path, LARGEST_UPLOAD)
        return Example.of(name, path.read_bytes())
    except DataError as error:
        raise DataError.at(path, None, str(error)) from None
    except OSError as error:
        raise DataError.at(path, None, (error.strerror or "cannot be read").lower()) from None
