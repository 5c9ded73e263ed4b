"""The one decoder. Every picture of the toolkit becomes an array here, so a path, a Pillow image and an array
of the same picture give the same pixels.

The rules, whatever the picture is:

- The result is RGB, uint8, of shape (height, width, 3).
- EXIF rotation is applied: the image is upright, as every viewer shows it, and boxes refer to the upright
  image. (No image of CUB-200-2011 is rotated by EXIF.)
- Grey becomes three equal channels, CMYK is converted, a palette is looked up.
- 16 bits become 8 by keeping the high byte, for grey and colour alike; nothing is clipped. Floating point and
  32-bit pixels are refused: it is not defined which value is white.
- Transparency is laid on white. Of an animation or a multi-page file the first frame counts.
- A file that is missing, empty, cut short, damaged, not an image, not a regular file or too large raises
  DataError with its path and the cause. Nothing is repaired, guessed or substituted.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import (
    Image,
    TiffImagePlugin,  # noqa: F401  imported to make the format known to Pillow, as the next
    UnidentifiedImageError,
    WebPImagePlugin,  # noqa: F401
)

from wsol.cores import usable_cores
from wsol.data.pixel_budget import PixelBudget
from wsol.data.regular_file import require_regular
from wsol.errors import DataError

Photo: TypeAlias = Path | str | Image.Image | NDArray[np.uint8] | NDArray[np.uint16]

T = TypeVar("T")
R = TypeVar("R")

# Only raster formats: a file called bird.jpg must not start an interpreter for PostScript.
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"})
LARGEST_FILE = 2 * 2**30  # bytes; more than 16-bit RGB of as many pixels as Pillow decodes

_BUDGET = PixelBudget(128 * 2**20)  # about half a gigabyte of RGB
_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SWAPS_SIDES = (5, 6, 7, 8)


class _Unsupported(ValueError):
    """Pixels that are intact, but of a kind that the rules above refuse."""


def to_rgb(photo: Photo) -> NDArray[np.uint8]:
    """A picture as (H, W, 3) uint8 RGB by the rules above.

    photo: a path; a Pillow image; or an array of uint8 or uint16 and of shape (H, W) for grey, (H, W, 3) for
    RGB or (H, W, 4) for RGB with alpha. An array that is uint8 RGB already is returned as it is.

    Raises DataError where the picture cannot be read, TypeError where it is none of these.

    >>> to_rgb(np.full((1, 2), 0x7FFF, np.uint16)).tolist()
    [[[127, 127, 127], [127, 127, 127]]]
    """
    if isinstance(photo, (str, Path)):
        return read_image(photo)
    if isinstance(photo, Image.Image):
        try:
            return np.array(_decode(photo))
        except Exception as error:  # the file is read only now, or the mode cannot be converted
            name = getattr(photo, "filename", "") or f"Pillow image of mode {photo.mode}"
            raise DataError.at(name, None, _cause(name, error)) from None
    return _array_to_rgb(photo)


def read_image(path: Path | str, at_least: int | None = None) -> NDArray[np.uint8]:
    """The image in a file as (height, width, 3) uint8 RGB, by the rules above. at_least: see `open_rgb`."""
    return np.array(open_rgb(path, at_least))


def decode_image(content: bytes | bytearray, most_pixels: int) -> NDArray[np.uint8]:
    """The same for a file that is in memory only: its bytes as (height, width, 3) uint8 RGB.

    most_pixels: a picture with more is refused by its header, before a pixel of it is decoded. The message of
    a DataError is the reason alone, to which the caller adds what the file is called.
    """
    try:
        if not content:
            raise _Unsupported("empty file")
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            width, height = image.size
            if width * height > most_pixels:
                most = f"at most {most_pixels / 1e6:g} megapixels are read"
                raise _Unsupported(f"{width} x {height} pixels are too many; {most}")
            return np.array(_decode(image))
    except Exception as error:
        raise DataError(_cause("", error)) from None


def open_rgb(path: Path | str, at_least: int | None = None) -> Image.Image:
    """The same as a Pillow image, for what Pillow does next.

    at_least: the caller will shrink the image to about this side, so a JPEG may be decoded at 1/2, 1/4 or 1/8
    of its size as long as no side falls below. Many times faster for photographs; for training only, since
    the pixels are not those of a full decode.
    """
    try:
        require_regular(path, LARGEST_FILE)
        with Image.open(path, formats=FORMATS) as image:
            if at_least is not None:
                image.draft(None, (at_least, at_least))
            return _decode(image)
    except Exception as error:  # decoders of damaged files raise nearly anything
        raise DataError.at(path, None, _cause(path, error)) from None


def read_segmentation(path: Path | str) -> NDArray[np.uint8]:
    """A segmentation as (height, width) uint8, 0 for background: the brightest channel of the image."""
    red, green, blue = np.moveaxis(read_image(path), 2, 0)
    return np.maximum(np.maximum(red, green), blue)


ODDITIES = ("grey", "CMYK", "palette", "16-bit", "transparent", "several frames", "rotated by EXIF")


@dataclass(frozen=True)
class ImageFacts:
    """What a full decode tells of a file. `size` is (width, height) of the upright image, `digest` is of the
    file's bytes, and `oddities` (among ODDITIES) are what had to be converted: () for plain 8-bit RGB."""

    size: tuple[int, int]
    digest: bytes
    oddities: tuple[str, ...]


def inspect_image(path: Path | str) -> ImageFacts:
    """Read a file once and decode it in full. Raises as `read_image` does."""
    try:
        require_regular(path, LARGEST_FILE)
        content = Path(path).read_bytes()
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            odd = _oddities(image)
            return ImageFacts(_decode(image).size, hashlib.blake2b(content, digest_size=16).digest(), odd)
    except Exception as error:
        raise DataError.at(path, None, _cause(path, error)) from None


def image_size(path: Path | str) -> tuple[int, int]:
    """(width, height) of the upright image, from the file's header alone."""
    try:
        require_regular(path, LARGEST_FILE)
        with Image.open(path, formats=FORMATS) as image:
            width, height = image.size
            return (height, width) if _orientation(image) in _SWAPS_SIDES else (width, height)
    except Exception as error:
        raise DataError.at(path, None, _cause(path, error)) from None


def image_sizes(paths: Iterable[Path]) -> list[tuple[int, int] | None]:
    """The size of each image, None where the header cannot be read."""

    def size(path: Path) -> tuple[int, int] | None:
        try:
            return image_size(path)
        except DataError:
            return None

    return list(in_threads(size, paths))


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """`work` on every item, in order, in threads: decoding and reading release the interpreter lock."""
    with ThreadPoolExecutor(max_workers=min(16, 2 * usable_cores())) as pool:
        yield from pool.map(work, items)


def _decode(image: Image.Image) -> Image.Image:
    """The upright RGB image."""
    orientation = _orientation(image)
    with _BUDGET.taken(image.width * image.height):
        image.load()
        rgb = _to_rgb(image)
        return rgb.transpose(_UPRIGHT[orientation]) if orientation in _UPRIGHT else rgb


def _oddities(image: Image.Image) -> tuple[str, ...]:
    """What `_decode` will have to convert, in words."""
    kinds = {"1": "grey", "L": "grey", "LA": "grey", "CMYK": "CMYK", "P": "palette", "PA": "palette"}
    found = {
        kinds.get(image.mode, "grey" if image.mode.startswith("I") else ""): True,
        "16-bit": image.mode.startswith("I") or ";16" in str(getattr(image, "tile", "")),
        "transparent": _has_alpha(image),
        "several frames": getattr(image, "n_frames", 1) > 1 and image.format != "MPO",
        "rotated by EXIF": _orientation(image) in _UPRIGHT,
    }
    return tuple(word for word, here in found.items() if word and here)


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation that is left to apply, 1 for none. Asked before the pixels are loaded, so that a
    header gives the same answer as a decode."""
    if image.format == "TIFF":
        return 1  # Pillow turns these upright itself
    if image.format == "PNG" and "exif" not in image.info:
        return 1  # Pillow would decode the whole file to look for EXIF behind the pixels
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # a damaged EXIF block does not make a picture unreadable
        return 1


def _has_alpha(image: Image.Image) -> bool:
    return image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        return _from_16_bits(image)
    if image.mode == "F":
        raise _Unsupported("floating point pixels; save it with 8 or 16 bits")
    if image.mode == "La":  # premultiplied grey, for which Pillow has this one conversion
        image = image.convert("LA")
    if _has_alpha(image):
        rgba = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _from_16_bits(image: Image.Image) -> Image.Image:
    values = np.asarray(image)
    if values.dtype.itemsize > 2 and (values.min() < 0 or values.max() > 0xFFFF):
        raise _Unsupported("32-bit pixels; save it with 8 or 16 bits")
    return Image.fromarray((values.astype(np.uint16) >> 8).astype(np.uint8)).convert("RGB")


def _array_to_rgb(photo: Any) -> NDArray[np.uint8]:
    array = np.asarray(photo)
    grey, colour = array.ndim == 2, array.ndim == 3 and array.shape[2] in (3, 4)
    if array.dtype not in (np.uint8, np.uint16) or not (grey or colour) or 0 in array.shape:
        given = f"{array.dtype} {array.shape}" if isinstance(photo, np.ndarray) else type(photo).__name__
        raise TypeError(
            "expected a path, a Pillow image, or an array of uint8 or uint16 and of shape (H, W), (H, W, 3) "
            f"or (H, W, 4); got {given}"
        )
    if array.dtype == np.uint16:
        array = (array >> 8).astype(np.uint8)
    return array if array.shape[2:] == (3,) else np.array(_to_rgb(Image.fromarray(array)))


def _cause(path: Path | str, error: Exception) -> str:
    """Why the image could not be read, in words for a user."""
    if isinstance(error, (DataError, _Unsupported)):
        return str(error)
    if isinstance(error, FileNotFoundError):
        return "no such image file"
    if isinstance(error, IsADirectoryError):
        return "a folder, not an image file"
    if isinstance(error, PermissionError):
        return "no permission to read this image"
    if isinstance(error, UnidentifiedImageError):
        empty = Path(path).is_file() and Path(path).stat().st_size == 0
        return "empty file" if empty else f"not an image ({', '.join(FORMATS)} are read)"
    if isinstance(error, Image.DecompressionBombError):
        return f"too many pixels ({error})"
    return f"damaged image ({' '.join(str(error).split()) or type(error).__name__})"
