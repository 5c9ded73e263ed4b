"""Files are there whole or not at all, and nothing of others is touched."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wsol.errors import RunFolderError
from wsol.runs import files
from wsol.runs.files import (
    alias_atomically,
    clear_leftovers,
    make_folder,
    open_regular,
    replacing,
    replacing_folder,
    write_atomically,
    write_json,
    write_text,
)

DRAFT = f".wsol-{'c0' * 16}.tmp"


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, b"one", b" two")
    assert path.read_bytes() == b"one two"
    write_text(path, "drei π \udcff")
    assert path.read_text() == "drei π \\udcff"
    assert names(tmp_path) == {"a.txt"}
    mask = os.umask(0o022)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask, "as any program makes files"


def test_missing_folders_are_made_only_when_asked(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"x\.json: could not be written: No such file or directory$"):
        write_json(tmp_path / "a" / "x.json", {})
    assert names(tmp_path) == set()
    write_json(tmp_path / "a" / "b" / "x.json", {}, parents=True)
    assert json.loads((tmp_path / "a" / "b" / "x.json").read_text()) == {}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@given(record=values)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_json_is_valid_whatever_is_written(record: object, tmp_path: Path) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    write_json(tmp_path / "x.json", record)
    back = json.loads((tmp_path / "x.json").read_text(), parse_constant=refuse)
    assert back == json.loads(json.dumps(record), parse_constant=lambda _: None)


def test_an_error_in_the_block_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as draft:  # noqa: PT012
        draft.write_text("new")
        assert draft.suffix == ".png", "writers choose the format by it"
        _ = 1 / 0
    assert path.read_text() == "old"
    with replacing(path) as draft:
        draft.write_text("new")
    assert path.read_text() == "new"
    assert names(tmp_path) == {"a.png"}


def test_an_error_of_another_file_is_not_blamed_on_this_one(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(FileNotFoundError, match="missing"), replacing(tmp_path / "out" / "a.png"):
        (tmp_path / "missing").read_bytes()
    assert names(tmp_path / "out") == set()


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "thesis.tex"
    victim.write_text("mine")
    (tmp_path / "source").write_text("new")
    links = [tmp_path / name for name in ("a", "b", "c", "d")]
    for link in links[:3]:
        link.symlink_to(victim)
    links[3].symlink_to(tmp_path / "nothing")
    write_text(links[0], "new")
    with replacing(links[1]) as draft:
        draft.write_text("new")
    alias_atomically(tmp_path / "source", links[2])
    write_text(links[3], "new")
    for link in links:
        assert not link.is_symlink()
        assert link.read_text() == "new"
    assert victim.read_text() == "mine"
    assert not (tmp_path / "nothing").exists()


def test_a_guessed_draft_is_not_followed_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "thesis.tex"
    victim.write_text("mine")
    monkeypatch.setattr("secrets.token_hex", lambda _: "c0" * 16)
    (tmp_path / DRAFT).symlink_to(victim)
    with pytest.raises(RunFolderError, match="File exists"):
        write_text(tmp_path / "a", "new")
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to a folder", "link to a device", "open file"])
def test_what_is_no_file_is_refused_and_stays(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    with (tmp_path / "open").open("w") as file:
        if kind == "folder":
            target.mkdir()
        elif kind == "pipe":
            os.mkfifo(target)
        else:
            places = {"link to a folder": "/tmp", "link to a device": "/dev/null"}
            target.symlink_to(places.get(kind, f"/proc/self/fd/{file.fileno()}"))
        before = target.lstat()
        for write in (lambda: write_json(target, {}), lambda: alias_atomically(tmp_path / "open", target)):
            with pytest.raises(RunFolderError, match="target: could not be written: "):
                write()
        assert os.path.samestat(target.lstat(), before)
        assert names(tmp_path) == {"target", "open"}


def test_devices_stay_devices() -> None:
    for path in (Path("/dev/null"), Path("/dev/stdout"), Path("/dev/full")):
        before = path.lstat()
        with pytest.raises(RunFolderError, match=f"{path}: could not be written: "):
            write_json(path, {})
        assert os.path.samestat(path.lstat(), before)


def test_a_name_of_255_bytes(tmp_path: Path) -> None:
    write_text(tmp_path / ("a" * 251 + ".txt"), "new")
    with pytest.raises(RunFolderError, match="File name too long"):
        write_text(tmp_path / ("a" * 252 + ".txt"), "new")
    assert len(names(tmp_path)) == 1


FULL = """
import resource, sys
from pathlib import Path
from wsol.errors import RunFolderError
from wsol.runs.files import replacing, write_text

def by_name(path):
    with replacing(path) as draft:
        draft.write_text("x" * 5000)

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for way in (lambda path: write_text(path, "x" * 5000), by_name):
    try:
        way(Path(sys.argv[1]))
    except RunFolderError as error:
        print(error)
"""


def test_a_full_disk_leaves_the_old_file_and_no_draft(tmp_path: Path, repository: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, cwd=repository
    )
    line = f"{path}: could not be written: File too large; the former one is intact\n"
    assert done.stdout == 2 * line, done
    assert path.read_text() == "old"
    assert names(tmp_path) == {"a.txt"}


def test_a_folder_is_exchanged_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "predictions"
    with replacing_folder(path) as draft:
        (draft / "a").write_text("old")
        assert not path.exists()
    with pytest.raises(ZeroDivisionError), replacing_folder(path) as draft:  # noqa: PT012
        (draft / "a").write_text("new")
        _ = 1 / 0
    assert (path / "a").read_text() == "old"
    with replacing_folder(path) as draft:
        (draft / "b").write_text("new")
    assert names(path) == {"b"}
    assert names(tmp_path) == {"predictions"}


def test_a_folder_where_names_cannot_be_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "exchange", lambda a, b: False)
    for content in ("old", "new"):
        with replacing_folder(tmp_path / "f") as draft:
            (draft / "a").write_text(content)
    assert (tmp_path / "f" / "a").read_text() == "new"
    assert names(tmp_path) == {"f"}


def test_a_link_or_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    (tmp_path / "file").write_text("mine")
    with replacing_folder(tmp_path / "link") as draft:
        (draft / "a").write_text("new")
    assert names(tmp_path / "link") == {"a"}
    assert names(tmp_path / "mine") == {"thesis.tex"}
    with (
        pytest.raises(RunFolderError, match="file: could not be written: "),
        replacing_folder(tmp_path / "file"),
    ):
        pass
    assert (tmp_path / "file").read_text() == "mine"
    assert names(tmp_path) == {"mine", "link", "file"}


SWAP_FOR_EVER = """
import sys
from pathlib import Path
from wsol.runs.files import replacing_folder

n = 0
while True:
    n += 1
    with replacing_folder(Path(sys.argv[1])) as draft:
        for name in "ab":
            (draft / name).write_text(str(n))
    if n == 1:
        print("begun", flush=True)
"""


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.long)])
def test_a_kill_while_folders_are_exchanged_leaves_one_of_them_whole(
    kills: int, tmp_path: Path, repository: Path
) -> None:
    path = tmp_path / "predictions"
    for number in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", SWAP_FOR_EVER, str(path)], stdout=subprocess.PIPE, cwd=repository
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * (number % 7))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert (path / "a").read_text() == (path / "b").read_text()
        clear_leftovers(tmp_path, ())
        assert names(tmp_path) == {"predictions"}


def test_an_alias_is_the_same_file_or_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "last").write_text("1")
    alias_atomically(tmp_path / "last", tmp_path / "best")
    alias_atomically(tmp_path / "last", tmp_path / "best")
    assert (tmp_path / "best").samefile(tmp_path / "last")

    def no_links(*_: object) -> None:
        raise OSError("no hard links here")

    monkeypatch.setattr(os, "link", no_links)
    alias_atomically(tmp_path / "last", tmp_path / "best")
    assert not (tmp_path / "best").samefile(tmp_path / "last")
    assert (tmp_path / "best").read_text() == "1"
    assert names(tmp_path) == {"last", "best"}


def test_only_own_drafts_are_cleared_and_none_in_the_making(tmp_path: Path) -> None:
    mine = ("thesis.2024.tmp", "results.1234.tmp", "notes.tmp", ".wsol-1.tmp", "metrics.csv.x.tmp", "a.part")
    for name in (*mine, DRAFT, f"{DRAFT}.pt2", "metrics.csv.1234.tmp"):
        (tmp_path / name).write_text("")
    (tmp_path / f".wsol-{'d0' * 16}.tmp").mkdir()
    (tmp_path / f".wsol-{'d0' * 16}.tmp" / "labels.npy").write_text("")
    with replacing(tmp_path / "report.html") as draft, replacing_folder(tmp_path / "predictions"):
        draft.write_text("new")
        clear_leftovers(tmp_path, {"metrics.csv"})  # as a run that starts beside a report in the making
    assert names(tmp_path) == {*mine, "report.html", "predictions"}


def test_a_folder_to_write_into_is_no_link(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a")
    assert not make_folder(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(RunFolderError, match="link: is a link"):
        make_folder(tmp_path / "link")
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="file: could not be written: File exists"):
        make_folder(tmp_path / "file")


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(path)
