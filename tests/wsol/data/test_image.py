"""The one decoder, kind of file by kind of file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wsol.data.image import (
    SUFFIXES,
    decode_image,
    image_size,
    image_sizes,
    inspect_image,
    read_image,
    read_segmentation,
)
from wsol.errors import DataError

RAMP = np.tile(np.arange(0, 240, 5, dtype=np.uint8), (32, 1))  # (32, 48): 0 to 235 from left to right


def colour(height: int = 32, width: int = 48) -> np.ndarray:
    y, x = np.indices((height, width))
    return np.stack([x * 5 % 256, y * 7 % 256, (x + y) * 3 % 256], axis=-1).astype(np.uint8)


@pytest.mark.parametrize("suffix", sorted(SUFFIXES - {".jpg", ".jpeg", ".gif", ".pgm", ".webp"}))
def test_lossless_formats_come_back_as_they_were(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"image{suffix}"
    Image.fromarray(colour()).save(path)
    image = read_image(path)
    assert image.dtype == np.uint8
    assert image.flags.writeable
    np.testing.assert_array_equal(image, colour())
    assert image_size(path) == (48, 32)
    assert inspect_image(path).oddities == ()


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg", ".webp"])
def test_lossy_formats_come_close(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"image{suffix}"
    Image.new("RGB", (40, 30), (200, 100, 50)).save(path, quality=95)
    image = read_image(path)
    assert image.shape == (30, 40, 3)
    assert np.abs(image.astype(int) - (200, 100, 50)).max() <= 3


def test_grey_becomes_three_equal_channels(tmp_path: Path) -> None:
    path = tmp_path / "grey.png"
    Image.fromarray(RAMP).save(path)
    np.testing.assert_array_equal(read_image(path), np.repeat(RAMP[..., None], 3, axis=2))
    np.testing.assert_array_equal(read_segmentation(path), RAMP)
    assert inspect_image(path).oddities == ("grey",)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_16_bit_grey_keeps_its_high_byte_and_is_not_clipped(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"deep{suffix}"
    Image.fromarray(RAMP.astype(np.uint16) * 256 + 37).save(path)
    np.testing.assert_array_equal(read_image(path)[..., 1], RAMP)
    assert inspect_image(path).oddities == ("grey", "16-bit")


def test_16_bit_colour_keeps_its_high_byte(tmp_path: Path) -> None:
    import cv2  # Pillow cannot write such a file

    path = tmp_path / "deep.png"
    cv2.imwrite(str(path), colour()[..., ::-1].astype(np.uint16) * 256 + 200)
    np.testing.assert_array_equal(read_image(path), colour())
    assert inspect_image(path).oddities == ("16-bit",)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_pixels_without_an_agreed_white_are_refused(tmp_path: Path, dtype: type) -> None:
    path = tmp_path / "pixels.tif"
    Image.fromarray(RAMP.astype(dtype) * dtype(70000)).save(path)
    with pytest.raises(DataError, match=r"pixels\.tif: \S+ (point )?pixels; save it with 8 or 16 bits"):
        read_image(path)


def test_cmyk_is_converted(tmp_path: Path) -> None:
    path = tmp_path / "print.jpg"
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(path, quality=95)
    assert np.abs(read_image(path).astype(int) - (255, 0, 0)).max() <= 4
    assert inspect_image(path).oddities == ("CMYK",)


def test_palette_is_looked_up_and_the_first_frame_counts(tmp_path: Path) -> None:
    path = tmp_path / "moving.gif"
    red, blue = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    red.save(path, save_all=True, append_images=[blue])
    np.testing.assert_array_equal(read_image(path), np.full((8, 8, 3), (255, 0, 0), np.uint8))
    assert inspect_image(path).oddities == ("palette", "several frames")


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparency_is_laid_on_white(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "glass.png"
    image = Image.new("RGBA", (8, 4), (0, 0, 0, 255))
    image.paste((0, 0, 0, 0), (4, 0, 8, 4))
    image.convert(mode).save(path)
    expected = np.zeros((4, 8, 3), np.uint8)
    expected[:, 4:] = 255
    np.testing.assert_array_equal(read_image(path), expected)
    assert "transparent" in inspect_image(path).oddities


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_rotation_is_applied_alike_to_pixels_and_size(
    tmp_path: Path, orientation: int, suffix: str
) -> None:
    upright = np.zeros((24, 40, 3), np.uint8)
    upright[:8, :8] = 255  # a white mark in the upper left corner
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright, 1),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    path = tmp_path / f"phone{suffix}"
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(np.ascontiguousarray(stored)).save(path, exif=exif, quality=100)
    image = read_image(path)
    assert image.shape == upright.shape
    assert np.abs(image.astype(int) - upright).max() <= 8
    assert image_size(path) == inspect_image(path).size == (40, 24)
    noted = orientation != 1 and suffix != ".tif"  # Pillow turns TIFF files on its own, and does not tell
    assert inspect_image(path).oddities == (("rotated by EXIF",) if noted else ())


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_a_damaged_exif_block_does_not_make_a_picture_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "odd.jpg"
    Image.fromarray(colour()).save(path, exif=b"Exif\x00\x00MM\x00*\xff\xff\xff\xff")
    assert read_image(path).shape == (32, 48, 3)


def test_training_decode_may_be_smaller_but_not_below_the_side_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "large.jpg"
    Image.fromarray(colour(600, 900)).save(path)
    assert read_image(path, at_least=256).shape == (300, 450, 3)
    assert read_image(path, at_least=301).shape == (600, 900, 3)
    assert read_image(path, at_least=2000).shape == (600, 900, 3)


def test_sizes_of_many_with_none_for_the_unreadable(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.png", tmp_path / "b.png"
    Image.fromarray(colour()).save(good)
    bad.write_bytes(b"no image")
    assert image_sizes([good, bad, tmp_path / "missing.png", good]) == [(48, 32), None, None, (48, 32)]


def test_equal_files_have_equal_digests(tmp_path: Path) -> None:
    for name, shade in (("a", 10), ("b", 10), ("c", 11)):
        Image.new("L", (4, 4), shade).save(tmp_path / f"{name}.png")
    a, b, c = (inspect_image(tmp_path / f"{n}.png").digest for n in "abc")
    assert a == b != c


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "bmp", "tif", "webp", "ppm"])
def test_bytes_are_decoded_as_the_file_is(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(path)
    np.testing.assert_array_equal(decode_image(path.read_bytes(), 108), read_image(path))
    with pytest.raises(DataError, match=r"^12 x 9 pixels are too many; at most 0\.000107 megapixels"):
        decode_image(path.read_bytes(), 107)
