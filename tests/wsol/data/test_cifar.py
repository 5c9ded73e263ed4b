"""CIFAR's published archives: digest, pickles that run nothing, and the images that come of them."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import struct
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsol.cli import main
from wsol.config import Data
from wsol.data import cifar
from wsol.data.archive import prepare
from wsol.data.cifar import CIFAR10, CIFAR100, PublishedCifar
from wsol.data.image import read_image
from wsol.data.index import detect_kind, open_dataset
from wsol.errors import DataError

NAMES = ["cat", "dog"]


def as_python_2(content: dict[str, Any]) -> bytes:
    """A pickle as Python 2 wrote the published ones, opcode by opcode: texts and pixels are raw bytes."""

    def text(value: bytes) -> bytes:
        return b"T" + struct.pack("<i", len(value)) + value

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    def dump(value: Any) -> bytes:
        if isinstance(value, str):
            return text(value.encode())
        if isinstance(value, int):
            return number(value)
        if isinstance(value, list):
            return b"](" + b"".join(map(dump, value)) + b"e"
        assert isinstance(value, np.ndarray)
        code = value.dtype.str[1:].encode()
        order = text(value.dtype.str[:1].encode())
        fields = b"(" + number(3) + order + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
        dtype = b"cnumpy\ndtype\n" + text(code) + number(0) + number(1) + b"\x87R" + fields
        shape = b"(" + b"".join(map(number, value.shape)) + b"t"
        empty = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + number(0) + b"\x85" + text(b"b")
        return empty + b"\x87R(" + number(1) + shape + dtype + b"\x89" + text(value.tobytes()) + b"tb"

    pairs = b"".join(dump(key) + dump(value) for key, value in content.items())
    return b"\x80\x02}(" + pairs + b"u."


def batch(kind: PublishedCifar, seed: int, num: int = 3) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    data = draw.integers(0, 256, (num, 3072), dtype=np.uint8)
    return {"data": data, kind.labels: [i % 2 for i in range(num)], "filenames": ["x.png"] * num}


def make_archive(path: Path, kind: PublishedCifar, **changed: bytes) -> dict[str, dict[str, Any]]:
    """An archive like the published one, with three images in each file."""
    files = {name: batch(kind, seed) for seed, name in enumerate((*kind.train, *kind.test))}
    contents = {name: as_python_2(value) for name, value in files.items()}
    contents[kind.meta] = as_python_2({kind.classes: NAMES})
    contents |= changed
    with tarfile.open(path, "w:gz") as tar:
        for name, content in contents.items():
            info = tarfile.TarInfo(f"{kind.folder}/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return files


def publish(monkeypatch: pytest.MonkeyPatch, kind: PublishedCifar, archive: Path) -> PublishedCifar:
    """Take an archive for the published one."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    known = replace(kind, sha256=digest, counts=(3 * len(kind.train), 3))
    monkeypatch.setattr(cifar, "PUBLISHED", (known,))
    return known


@pytest.mark.parametrize("kind", [CIFAR10, CIFAR100], ids=lambda k: k.name)
def test_every_image_comes_out_as_it_was(
    kind: PublishedCifar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, out = tmp_path / kind.archive, tmp_path / "out"
    files = make_archive(archive, kind)
    publish(monkeypatch, kind, archive)
    assert main(["data", "prepare", str(archive), str(out)]) == 0
    assert "unpacked from" in capsys.readouterr().out
    assert detect_kind(out) == kind.name
    index = open_dataset(Data(kind.name, root=out, image_size=32, resize=32))
    assert (index.name, index.classes) == (kind.name, ("cat", "dog"))
    assert (len(index.split("train")), len(index.split("test"))) == (3 * len(kind.train), 3)
    data = np.concatenate([files[name]["data"] for name in kind.train])
    labels = [label for name in kind.train for label in files[name][kind.labels]]
    for sample in index.split("train"):
        number = int(sample.path.stem)
        assert sample.label == labels[number]
        # Planes of red, green and blue, each row by row: as the authors' page describes it.
        for channel in range(3):
            plane = data[number, 1024 * channel : 1024 * (channel + 1)].reshape(32, 32)
            assert np.array_equal(read_image(sample.path)[:, :, channel], plane)
    assert prepare(archive, out) == out, "a second time changes nothing"


def test_another_archive_than_the_published_one_is_refused_before_it_is_read(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    archive = tmp_path / CIFAR10.archive
    make_archive(archive, CIFAR10, data_batch_1=pickle.dumps(Evil(trace)))
    with pytest.raises(DataError, match=r"not the published cifar-10-python.tar.gz: its SHA-256 begins"):
        prepare(archive, tmp_path / "out")
    assert not trace.exists()
    assert not (tmp_path / "out").exists()


class Evil:
    """A pickle that makes a folder when it is read by a plain unpickler."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Ran out of input"),
        (b"\x80\x02}q\x00", "truncated|ran out|Ran out|EOF"),
        (pickle.dumps([1]), "expected a table of named values"),
        (pickle.dumps({"data": 1, "labels": []}), "expected 'data' of uint8"),
        (as_python_2({"data": np.zeros((2, 3072), np.uint8), "labels": [0, 2]}), "expected 'data' of uint8"),
        (as_python_2({"data": np.zeros((2, 3072), np.uint8), "labels": [0]}), "expected 'data' of uint8"),
        (as_python_2({"data": np.zeros((2, 3072), np.int64), "labels": [0, 1]}), "expected 'data' of uint8"),
        (as_python_2({"data": np.zeros((1, 3072), np.uint8), "labels": [0]}), "13 train images, expected 15"),
        (pickle.dumps(np.float64(1)), "asks for numpy"),
    ],
)
def test_files_that_hold_something_else(
    content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "cifar.tgz"
    make_archive(archive, CIFAR10, data_batch_3=content)
    publish(monkeypatch, CIFAR10, archive)
    with pytest.raises(DataError, match=message):
        prepare(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_pickle_runs_no_code_even_in_an_archive_that_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, archive = tmp_path / "ran", tmp_path / "cifar.tgz"
    make_archive(archive, CIFAR10, data_batch_2=pickle.dumps(Evil(trace)))
    publish(monkeypatch, CIFAR10, archive)
    with pytest.raises(DataError, match=r"refused: the pickle asks for posix.mkdir, which could run code"):
        prepare(archive, tmp_path / "out")
    assert not trace.exists()
    pickle.loads(pickle.dumps(Evil(trace)))
    assert trace.exists(), "the pickle does what it should be kept from"


def test_class_names_that_lead_elsewhere_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "cifar.tgz"
    make_archive(archive, CIFAR10, **{CIFAR10.meta: as_python_2({"label_names": ["../../cat", "dog"]})})
    publish(monkeypatch, CIFAR10, archive)
    with pytest.raises(DataError, match="expected plain class names"):
        prepare(archive, tmp_path / "out")


def test_a_missing_folder_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cifar100 is not here; unpack its .* cifar-100-python.tar.gz"):
        open_dataset(Data("cifar100", root=tmp_path / "none", image_size=32, resize=32))
