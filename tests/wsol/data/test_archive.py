"""Unpacking a published archive. What is refused is in tests/faults."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from wsol.cli import main
from wsol.data.archive import prepare
from wsol.data.faults import Faults
from wsol.data.sets.cub import Cub
from wsol.data.synthetic.paint import make_dataset
from wsol.errors import DataError


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    return make_dataset(tmp_path / "birds", species=2, train=2, test=1, size=48, progress=False)


@pytest.fixture
def archive(birds: Path, tmp_path: Path) -> Path:
    """As CUB is published: one folder, and a file beside it."""
    path = tmp_path / "CUB.tgz"
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo("./attributes.txt")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"abc"))
        tar.add(birds, "CUB_200_2011")
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_data_set_becomes_the_folder_asked_for(archive: Path, birds: Path, tmp_path: Path) -> None:
    out = prepare(archive, tmp_path / "deep" / "CUB")
    assert files(out) == files(birds) | {"attributes.txt": b"abc"}
    assert Cub().read(out, Faults()).digest() == Cub().read(birds, Faults()).digest()
    assert [p.name for p in out.parent.iterdir()] == ["CUB"]  # no draft is left


def test_twice_does_no_harm(archive: Path, tmp_path: Path) -> None:
    out = prepare(archive, tmp_path / "CUB")
    (out / "my_notes.txt").write_text("mine")
    assert prepare(archive, out) == out
    assert (out / "my_notes.txt").read_text() == "mine"


def test_plain_tar_and_archives_without_a_top_folder(birds: Path, tmp_path: Path) -> None:
    path = tmp_path / "flat.tar"
    with tarfile.open(path, "w") as tar:
        for child in sorted(birds.iterdir()):
            tar.add(child, child.name)
    assert files(prepare(path, tmp_path / "out")) == files(birds)


def test_an_empty_folder_is_taken_and_a_full_one_refused(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    prepare(archive, tmp_path / "empty")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    with pytest.raises(DataError, match="already exists and is not empty"):
        prepare(archive, tmp_path / "full")
    assert files(tmp_path / "full") == {"thesis.tex": b"mine"}


def test_the_command_unpacks_and_checks(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "CUB"
    assert main(["data", "prepare", str(archive), str(out)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{out}: unpacked from {archive}",
        "6 images, 2 classes, no fault",
    ]
    assert main(["data", "prepare", str(archive), str(out)]) == 0
    assert "exists already, not changed" in capsys.readouterr().out
    assert main(["data", "prepare", str(tmp_path / "none.tgz"), str(tmp_path / "x")]) == 2
    assert "none.tgz: no such archive" in capsys.readouterr().err
