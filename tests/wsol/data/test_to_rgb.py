"""One picture, one result: as a path, as a Pillow image (its pixels loaded or not) and as an array."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from wsol.data.image import image_size, inspect_image, read_image, to_rgb
from wsol.errors import DataError

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (20, 30, 3), dtype=np.uint8)
GREY = COLOUR[..., 0]
ALPHA = np.dstack([COLOUR, RNG.integers(0, 256, (20, 30), dtype=np.uint8)])
DEEP = RNG.integers(0, 2**16, (20, 30, 3), dtype=np.uint16)


def exif(orientation: int) -> Image.Exif:
    block = Image.Exif()
    block[0x0112] = orientation
    return block


def save(array: np.ndarray, mode: str | None = None, **settings: object) -> Callable[[Path], object]:
    image = Image.fromarray(array)
    return lambda path: (image.convert(mode) if mode else image).save(path, **settings)  # type: ignore[arg-type]


def save_transparent_palette(path: Path) -> None:
    image = Image.fromarray(COLOUR).quantize(16)
    image.save(path, transparency=bytes(range(0, 256, 16)))


FILES: dict[str, Callable[[Path], object]] = {
    "plain.png": save(COLOUR),
    "plain.jpg": save(COLOUR),
    **{
        f"exif{n}.{s}": save(COLOUR, exif=exif(n)) for n in range(1, 9) for s in ("jpg", "png", "tif", "webp")
    },
    "grey16.png": save(DEEP[..., 0]),
    "grey16.tif": save(DEEP[..., 0]),
    "grey16.pgm": save(DEEP[..., 0]),
    "rgb16.png": lambda path: cv2.imwrite(str(path), DEEP[..., ::-1]),
    "rgb16.tif": lambda path: cv2.imwrite(str(path), DEEP[..., ::-1]),
    "palette.png": save(COLOUR, "P"),
    "palette_alpha.png": save_transparent_palette,
    "palette.gif": save(COLOUR),
    "grey_alpha.png": save(ALPHA, "LA"),
    "rgba.png": save(ALPHA),
    "rgba.tif": save(ALPHA),
    "rgba.webp": save(ALPHA, lossless=True),
    "key_colour.png": save(COLOUR, transparency=tuple(COLOUR[3, 4].tolist())),
    "cmyk.jpg": save(COLOUR, "CMYK"),
    "cmyk.tif": save(COLOUR, "CMYK"),
    "bits.png": save(GREY, "1"),
    "bits.tif": save(GREY, "1"),
    "grey.jpg": save(GREY),
}


@pytest.mark.parametrize("name", FILES)
def test_a_pillow_image_gives_the_pixels_of_its_path(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    FILES[name](path)
    expected = read_image(path)
    assert expected.dtype == np.uint8
    assert expected.shape == (*image_size(path)[::-1], 3)
    np.testing.assert_array_equal(to_rgb(path), expected)
    np.testing.assert_array_equal(to_rgb(str(path)), expected)
    with Image.open(path) as image:
        np.testing.assert_array_equal(to_rgb(image), expected)
        np.testing.assert_array_equal(to_rgb(image), expected, "a second time")
    with Image.open(io.BytesIO(path.read_bytes())) as image:
        image.load()
        np.testing.assert_array_equal(to_rgb(image), expected, "pixels loaded before")
        np.testing.assert_array_equal(to_rgb(image.copy()), expected, "a copy")


def on_white(rgba: np.ndarray) -> np.ndarray:
    alpha = rgba[..., 3:] / 255.0
    return rgba[..., :3] * alpha + 255.0 * (1 - alpha)


def test_arrays_follow_the_same_rules() -> None:
    assert to_rgb(COLOUR) is COLOUR
    np.testing.assert_array_equal(to_rgb(GREY), np.repeat(GREY[..., None], 3, axis=2))
    np.testing.assert_array_equal(to_rgb(DEEP), (DEEP >> 8).astype(np.uint8))
    np.testing.assert_array_equal(to_rgb(DEEP[..., 1]), to_rgb((DEEP[..., 1] >> 8).astype(np.uint8)))
    assert np.abs(to_rgb(ALPHA) - on_white(ALPHA)).max() <= 1
    deep_alpha = ALPHA.astype(np.uint16) * 256 + 99
    np.testing.assert_array_equal(to_rgb(deep_alpha), to_rgb(ALPHA))


@pytest.mark.parametrize("array", [GREY, COLOUR, ALPHA, DEEP[..., 0]], ids=["grey", "rgb", "rgba", "16-bit"])
def test_an_array_gives_the_pixels_of_its_file(tmp_path: Path, array: np.ndarray) -> None:
    Image.fromarray(array).save(tmp_path / "image.png")
    np.testing.assert_array_equal(to_rgb(array), to_rgb(tmp_path / "image.png"))


@pytest.mark.parametrize(
    ("photo", "given"),
    [
        (COLOUR / 255.0, r"float64 \(20, 30, 3\)"),
        (COLOUR.astype(np.int64), "int64"),
        (COLOUR[..., :2], r"uint8 \(20, 30, 2\)"),
        (COLOUR[..., :1], r"uint8 \(20, 30, 1\)"),
        (COLOUR[None], r"uint8 \(1, 20, 30, 3\)"),
        (COLOUR[:0], r"uint8 \(0, 30, 3\)"),
        (None, "NoneType"),
        (b"bytes", "bytes"),
    ],
)
def test_anything_else_is_a_type_error_that_says_what_was_expected(photo: object, given: str) -> None:
    with pytest.raises(TypeError, match=rf"expected a path, a Pillow image, or an array .* got {given}"):
        to_rgb(photo)  # type: ignore[arg-type]


def test_a_pillow_image_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Pillow image of mode F: floating point pixels"):
        to_rgb(Image.new("F", (3, 3)))
    path = tmp_path / "cut.png"
    save(COLOUR)(path)
    path.write_bytes(path.read_bytes()[:-300])
    with Image.open(path) as image, pytest.raises(DataError, match=r"cut\.png: damaged image"):
        to_rgb(image)


@pytest.mark.parametrize("read", [read_image, to_rgb, image_size, inspect_image])
def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path, read: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    for name in ("pipe.jpg", "zero.png"):
        with pytest.raises(DataError, match=rf"{name}: not a regular file"):
            read(tmp_path / name)


def test_a_file_of_a_terabyte_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.png"
    with path.open("wb") as file:
        file.truncate(2**40)  # takes no space: the file is one hole
    with pytest.raises(DataError, match=r"huge\.png: a file of 1,099,511,627,776 bytes"):
        inspect_image(path)
