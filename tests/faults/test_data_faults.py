"""Bad annotations and bad images: a DataError that says where, never a guess, never an altered file."""

from __future__ import annotations

import io
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from wsol.data.dataset import make_eval_loader
from wsol.data.faults import Faults
from wsol.data.image import image_size, inspect_image, read_image
from wsol.data.sets.cub import Cub
from wsol.data.synthetic.paint import make_dataset
from wsol.data.transforms import View
from wsol.errors import DataError

T = TypeVar("T")


@pytest.fixture(scope="module")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("painted") / "birds"
    return make_dataset(out, species=2, train=2, test=1, size=48, progress=False)


@pytest.fixture
def root(painted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(painted, tmp_path / "birds"))


MALFORMED = [
    ("images.txt", 2, b"2", "expected 'IMAGE_ID PATH', got '2'"),
    ("images.txt", 2, b"two a/b.jpg", "'two' is not a whole number"),
    ("images.txt", 2, b"-2 a/b.jpg", "'-2' is not a whole number"),
    ("images.txt", 2, "\uff12 a/b.jpg".encode(), "is not a whole number"),  # digits of another script
    ("images.txt", 2, b"1 a/b.jpg", "id 1 is listed twice, first in line 1"),
    ("images.txt", 2, b"2 ../../secret.jpg", "leads out of the data set"),
    ("images.txt", 2, b"2 /etc/passwd", "leads out of the data set"),
    ("images.txt", 2, b"2 a\x00b.jpg", "holds unprintable characters"),
    ("images.txt", 2, b"2 caf\xe9.jpg", "not UTF-8 text"),
    ("image_class_labels.txt", 3, b"3", "expected 'IMAGE_ID CLASS_ID'"),
    ("image_class_labels.txt", 3, b"3 1 1", "'1 1' is not a whole number"),
    ("image_class_labels.txt", 3, b"3 7", "unknown class 7: not in classes.txt"),
    ("image_class_labels.txt", 3, b"33 1", "unknown image 33: not in images.txt"),
    ("image_class_labels.txt", 3, b"2 1", "id 2 is listed twice, first in line 2"),
    ("image_class_labels.txt", 3, b"3 " + b"9" * 5000, "is not a whole number"),
    ("bounding_boxes.txt", 4, b"4 1 2 3", "expected 'IMAGE_ID X Y WIDTH HEIGHT', got 4 columns"),
    ("bounding_boxes.txt", 4, b"4 1 2 3 4 5", "got 6 columns"),
    ("bounding_boxes.txt", 4, b"4 1 2 0 4", "box of width 0 and height 4"),
    ("bounding_boxes.txt", 4, b"4 1 2 3 -4", "box of width 3 and height -4"),
    ("bounding_boxes.txt", 4, b"4 1 2 nan 4", "'nan' is not a number"),
    ("bounding_boxes.txt", 4, b"4 1 inf 3 4", "'inf' is not a number"),
    ("bounding_boxes.txt", 4, b"4 1 2 1e999 4", "'1e999' is not a number"),
    ("bounding_boxes.txt", 4, b"4 1e308 2 1e308 4", "box with a corner that is not a finite number"),
    ("bounding_boxes.txt", 4, b"4 1_0 2 3 4", "'1_0' is not a number"),
    ("bounding_boxes.txt", 4, b"4 1,5 2 3 4", "'1,5' is not a number"),
    ("bounding_boxes.txt", 4, b"4 48 2 3 4", "lies outside the image of"),
    ("bounding_boxes.txt", 4, b"4 -9 2 9 4", "lies outside the image of"),
    ("bounding_boxes.txt", 4, b"40 1 2 3 4", "unknown image 40"),
    ("train_test_split.txt", 5, b"5 yes", "expected 1 (training) or 0 (test), got 'yes'"),
    ("train_test_split.txt", 5, b"5 2", "expected 1 (training) or 0 (test), got '2'"),
    ("train_test_split.txt", 5, b"4 1", "id 4 is listed twice, first in line 4"),
    ("classes.txt", 2, b"2", "expected 'CLASS_ID NAME'"),
    ("classes.txt", 2, b"1 002.Twin", "id 1 is listed twice"),
    ("classes.txt", 2, b"2 \xff", "not UTF-8 text"),
    ("hierarchy.csv", 3, b"2,no", "2 cells where the header has 4"),
]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(("file", "line", "text", "reason"), MALFORMED)
def test_malformed_lines(root: Path, file: str, line: int, text: bytes, reason: str, line_end: bytes) -> None:
    path = root / file
    lines = path.read_bytes().splitlines()
    lines[line - 1] = text
    path.write_bytes(line_end.join(lines))
    with pytest.raises(DataError) as caught:
        Cub().read(root, Faults())
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", ["image_class_labels.txt", "bounding_boxes.txt", "train_test_split.txt"])
def test_a_row_that_is_missing(root: Path, file: str) -> None:
    lines = (root / file).read_text().splitlines()
    (root / file).write_text("\n".join(lines[:3] + lines[4:]))
    with pytest.raises(DataError, match=rf"images\.txt:4: image 4 has no row in {file}"):
        Cub().read(root, Faults())


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\r\n"])
def test_an_empty_file(root: Path, content: bytes) -> None:
    (root / "classes.txt").write_bytes(content)
    with pytest.raises(DataError, match=r"classes\.txt: no rows; expected lines 'CLASS_ID NAME'"):
        Cub().read(root, Faults())


def test_the_same_image_in_train_and_test_is_refused(root: Path) -> None:
    lines = (root / "images.txt").read_text().splitlines()
    lines[2] = "3 ./" + lines[0].split()[1].replace("/", "//")  # the same path, written otherwise
    (root / "images.txt").write_text("\n".join(lines))
    reason = r"images\.txt:3: .* is also in line 1, once for training and once for test"
    with pytest.raises(DataError, match=reason):
        Cub().read(root, Faults())


def attempt(read: Callable[[Path], T], path: Path) -> T | str:
    """What is read, or the message of the one error that is allowed."""
    try:
        return read(path)
    except DataError as error:
        return str(error)


def jpeg() -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def png() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 20, 3), dtype=np.uint8)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("content", [jpeg(), png()], ids=["jpeg", "png"])
def test_an_image_cut_short_anywhere_is_an_error_never_half_a_picture(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cut.jpg"
    path.write_bytes(content)
    whole = read_image(path)
    for length in range(0, len(content), 13):
        path.write_bytes(content[:length])
        result = attempt(read_image, path)
        if isinstance(result, str):
            assert result.startswith(f"{path}: ")
        else:  # only what stands behind the pixels is gone
            np.testing.assert_array_equal(result, whole)
            assert length > 0.95 * len(content)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([jpeg(), png()]), st.data())
def test_damaged_bytes_give_an_image_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.jpg"
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged)
    for read in (read_image, image_size, inspect_image):
        result = attempt(read, path)
        assert not isinstance(result, str) or result.startswith(f"{path}: ")


def bomb() -> bytes:
    """A PNG of a few bytes whose header promises 60,000 x 60,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(b"\0" * 100))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "empty file"),
        (b"Dear diary", "not an image"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
        (b"GIF89a", "not an image"),
        (bomb(), "too many pixels"),
        (None, "no such image file"),
    ],
    ids=["empty", "text", "postscript", "cut", "bomb", "missing"],
)
def test_what_is_no_image_is_named_with_its_cause(tmp_path: Path, content: bytes | None, cause: str) -> None:
    path = tmp_path / "bird.jpg"
    if content is not None:
        path.write_bytes(content)
    for read in (read_image, image_size, inspect_image):
        with pytest.raises(DataError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: {cause}")
        assert "\n" not in str(caught.value)


def test_a_folder_is_no_image(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a folder, not an image file"):
        read_image(tmp_path)


def test_an_image_that_turns_unreadable_during_evaluation_keeps_its_place(root: Path) -> None:
    samples = Cub().read(root, Faults()).samples
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
    batches = iter(make_eval_loader(samples, View("resize", 32), batch=2))
    first = next(batches)
    del before[samples[3].path]
    samples[3].path.unlink()
    rest = list(batches)
    failed = torch.cat([first.failed, *(b.failed for b in rest)])
    assert failed.tolist() == [False, False, False, True, False, False]
    assert {p: p.read_bytes() for p in root.rglob("*") if p.is_file()} == before
