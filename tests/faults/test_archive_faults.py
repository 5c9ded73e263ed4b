"""Archives that are hostile or broken: nothing outside the target, all or nothing inside."""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from wsol.data import archive as archive_module
from wsol.data.archive import prepare
from wsol.errors import DataError

Member = tuple[tarfile.TarInfo, bytes]


def file(name: str, content: bytes = b"1 a/b.jpg\n") -> Member:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    return info, content


def special(name: str, kind: bytes, target: str = "") -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def pack(path: Path, *members: Member) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with something of the user's in it, below which the target will be."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "precious.txt").write_text("mine")
    return tmp_path / "home"


def nothing_changed(place: Path) -> bool:
    names = sorted(str(p.relative_to(place.parent)) for p in place.parent.rglob("*"))
    return (
        names == ["bad.tgz", "home", "home/precious.txt"] and (place / "precious.txt").read_text() == "mine"
    )


GOOD = file("CUB/images.txt")


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (file("../precious.txt"), "leads out of the target"),
        (file("CUB/../../precious.txt"), "leads out of the target"),
        (file("/tmp/precious.txt"), "leads out of the target"),
        (file("..\\precious.txt"), "leads out of the target"),
        (file("C:/precious.txt"), "leads out of the target"),
        (special("CUB/link", tarfile.SYMTYPE, "../../precious.txt"), "a link or a device"),
        (special("CUB/inside", tarfile.SYMTYPE, "images.txt"), "a link or a device"),
        (special("CUB/hard", tarfile.LNKTYPE, "../precious.txt"), "a link or a device"),
        (special("CUB/pipe", tarfile.FIFOTYPE), "a link or a device"),
        (special("CUB/disk", tarfile.BLKTYPE), "a link or a device"),
    ],
)
def test_members_that_could_write_elsewhere_are_refused(place: Path, member: Member, reason: str) -> None:
    bad = pack(place.parent / "bad.tgz", GOOD, member)
    with pytest.raises(DataError, match=rf"bad\.tgz: refused: .*{reason}"):
        prepare(bad, place / "CUB")
    assert nothing_changed(place)


def test_writing_through_a_link_is_refused_before_the_write(place: Path) -> None:
    link = special("CUB/way_out", tarfile.SYMTYPE, str(place))
    bad = pack(place.parent / "bad.tgz", GOOD, link, file("CUB/way_out/precious.txt", b"stolen"))
    with pytest.raises(DataError, match="a link or a device"):
        prepare(bad, place / "CUB")
    assert nothing_changed(place)


def test_a_bomb_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "ALWAYS_ALLOWED", 2**20)
    bad = pack(place.parent / "bad.tgz", GOOD, file("CUB/zeros", bytes(2**22)))
    assert bad.stat().st_size * 50 < 2**22
    with pytest.raises(DataError, match="unpacks to far more"):
        prepare(bad, place / "CUB")
    assert nothing_changed(place)


def test_a_bomb_in_a_header_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "ALWAYS_ALLOWED", 2**20)
    info, content = GOOD
    with tarfile.open(place.parent / "bad.tgz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        large = tarfile.TarInfo("CUB/comment")
        large.pax_headers = {"comment": "x" * 2**22}
        tar.addfile(large)
        tar.addfile(info, io.BytesIO(content))
    with pytest.raises(DataError, match="unpacks to far more"):
        prepare(place.parent / "bad.tgz", place / "CUB")
    assert nothing_changed(place)


def test_a_sparse_file_of_a_terabyte_is_not_read_through(place: Path) -> None:
    bad = place.parent / "bad.tar"
    bad.touch()
    os.truncate(bad, 10**12)  # takes no space on the disk; as an archive it ends at once
    with pytest.raises(DataError, match=r"bad\.tar: neither CIFAR nor a data set in CUB layout"):
        prepare(bad, place / "CUB")
    assert {p.name for p in place.iterdir()} == {"precious.txt"}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("mtime", "nan", "at a time that does not exist"),
        ("mtime", "1e400", "at a time that does not exist"),
        ("path", "CUB/a\0b.txt", "none that a file can have"),
    ],
)
def test_strange_values_in_a_header_are_one_line(place: Path, name: str, value: str, reason: str) -> None:
    with tarfile.open(place.parent / "bad.tgz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("CUB/images.txt")
        info.pax_headers = {name: value}
        tar.addfile(info)
    with pytest.raises(DataError, match=rf"bad\.tgz: refused: .*{reason}"):
        prepare(place.parent / "bad.tgz", place / "CUB")
    assert nothing_changed(place)


def truncated(share: float) -> Callable[[bytes], bytes]:
    return lambda raw: raw[: int(len(raw) * share)]


def flipped(raw: bytes) -> bytes:
    middle = len(raw) // 2
    return raw[:middle] + bytes([raw[middle] ^ 0xFF]) + raw[middle + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        truncated(0.2),
        truncated(0.6),
        truncated(0.99),
        lambda raw: raw[:-4],  # all of the files, but not all of the check sum
        flipped,
    ],
    ids=["0.2", "0.6", "0.99", "check sum", "flipped byte"],
)
def test_a_broken_archive_leaves_nothing_behind(place: Path, damage: Callable[[bytes], bytes]) -> None:
    noise = os.urandom(100_000)
    bad = pack(place.parent / "bad.tgz", GOOD, file("CUB/images/a.jpg", noise), file("CUB/classes.txt"))
    bad.write_bytes(damage(bad.read_bytes()))
    with pytest.raises(DataError, match=r"bad\.tgz: not a complete \.tgz archive .*get it again"):
        prepare(bad, place / "CUB")
    assert nothing_changed(place)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"this is no archive",
        b"\xff\xd8\xff\xe0\x00\x10JFIF" + os.urandom(5000),  # as a photograph begins
        b"PK\x03\x04" + os.urandom(5000),  # as a .zip begins
        gzip.compress(b"nor is this" * 100),
    ],
    ids=["empty", "text", "jpeg", "zip", "packed text"],
)
def test_what_is_no_archive_is_not_called_cut_short(place: Path, content: bytes) -> None:
    bad = place.parent / "bad.tgz"
    bad.write_bytes(content)
    with pytest.raises(DataError, match=r"bad\.tgz: not an archive \(.*\.tgz.* is expected"):
        prepare(bad, place / "CUB")
    assert nothing_changed(place)


def test_an_archive_of_something_else(place: Path) -> None:
    bad = pack(place.parent / "bad.tgz", file("thesis/chapter1.tex"))
    with pytest.raises(DataError, match=r"images\.txt is missing"):
        prepare(bad, place / "CUB")
    assert nothing_changed(place)


def test_a_full_disk_leaves_nothing_behind(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    bad = pack(place.parent / "bad.tgz", GOOD)
    monkeypatch.setattr(tarfile.TarFile, "makefile", no_space)
    with pytest.raises(DataError, match=r"cannot be unpacked .*No space left on device"):
        prepare(bad, place / "CUB")
    assert nothing_changed(place)


def test_killed_in_the_middle_it_can_be_repeated(place: Path, repository: Path) -> None:
    members = [file(f"CUB/images/{i}.jpg", os.urandom(20_000)) for i in range(400)]
    good = pack(place.parent / "bad.tgz", *members, GOOD)
    code = "import sys; from wsol.data.archive import prepare; prepare(sys.argv[1], sys.argv[2])"
    child = subprocess.Popen([sys.executable, "-c", code, good, place / "CUB"], cwd=repository)
    draft = place / f".CUB.{child.pid}.part"
    deadline = time.monotonic() + 60
    while not (draft / "CUB/images/5.jpg").exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL, "the child was done before it could be killed"
    assert draft.exists()
    assert not (place / "CUB").exists()
    prepare(good, place / "CUB")
    assert sorted(p.name for p in place.iterdir()) == ["CUB", "precious.txt"]
    assert len(list((place / "CUB" / "images").iterdir())) == 400
