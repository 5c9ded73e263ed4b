"""A pack whose files are not those of its manifest is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsol.errors import RunFolderError
from wsol.runs.files import write_text
from wsol.runs.manifest import read_manifest, write_manifest

ALLOWED = ("a.txt", "b.bin")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_text(tmp_path / "a.txt", "one")
    (tmp_path / "b.bin").write_bytes(bytes(range(256)))
    write_manifest(tmp_path / "manifest.json", "name")
    return tmp_path


def read(folder: Path) -> dict[str, object]:
    return read_manifest(folder / "manifest.json", ALLOWED)


def test_a_whole_folder_is_read_with_its_name(folder: Path) -> None:
    record = read(folder)
    assert record["name"] == "name"
    assert json.loads((folder / "manifest.json").read_text())["files"].keys() == {"a.txt", "b.bin"}


@settings(max_examples=20)
@given(place=st.integers(0, 255), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int) -> None:
    folder = tmp_path_factory.mktemp("pack")
    content = bytearray(range(256))
    (folder / "b.bin").write_bytes(content)
    write_manifest(folder / "manifest.json", "name")
    content[place] ^= 1 << bit
    (folder / "b.bin").write_bytes(content)
    with pytest.raises(RunFolderError, match=r"b\.bin: damaged or changed"):
        read(folder)


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "a.txt").unlink()
    with pytest.raises(RunFolderError, match=r"a\.txt is missing in this pack"):
        read(folder)


@pytest.mark.parametrize("name", ["evil.pkl", "evil.py", "sub"])
def test_a_file_too_many_is_refused(folder: Path, name: str) -> None:
    (folder / name).mkdir() if name == "sub" else (folder / name).write_bytes(b"x")
    with pytest.raises(RunFolderError, match=f"'{name}' is no part of a pack; nothing was loaded"):
        read(folder)


def test_a_manifest_cannot_allow_what_a_pack_does_not_hold(folder: Path) -> None:
    (folder / "evil.py").write_text("boom")
    (folder / "manifest.json").unlink()
    write_manifest(folder / "manifest.json", "name")
    with pytest.raises(RunFolderError, match=r"'evil\.py' is no part of a pack"):
        read(folder)


@pytest.mark.parametrize("outside", ["../secret", "/etc/passwd", "sub/a.txt"])
def test_a_manifest_cannot_name_files_elsewhere(folder: Path, outside: str) -> None:
    record = json.loads((folder / "manifest.json").read_text())
    record["files"][outside] = "0" * 64
    (folder / "manifest.json").write_text(json.dumps(record))
    with pytest.raises(RunFolderError, match="is no part of a pack"):
        read(folder)


def test_what_git_and_the_hub_leave_beside_is_passed_over(folder: Path) -> None:
    (folder / ".gitattributes").write_text("*.bin filter=lfs")
    (folder / ".cache").mkdir()
    assert read(folder)["name"] == "name"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": 1}', '{"format": 1, "name": 1, "wsol": 1, "files": []}', "[" * 10_000],
)
def test_what_is_no_manifest_is_refused(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    with pytest.raises(RunFolderError, match="not the manifest of a pack"):
        read(folder)


def test_a_newer_manifest_says_to_update(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"format": 2}')
    with pytest.raises(RunFolderError, match="newer than this wsol; update wsol"):
        read(folder)


def test_a_pipe_in_place_of_a_file_does_not_wait(folder: Path) -> None:
    import os

    (folder / "a.txt").unlink()
    os.mkfifo(folder / "a.txt")
    with pytest.raises(RunFolderError, match="not a regular file"):
        read(folder)
