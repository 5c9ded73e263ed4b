"""Files of boxes: the journal that survives a kill, the formats, and names that are too long."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsol.errors import RunFolderError
from wsol.localization.localized import Finding
from wsol.records import Box
from wsol.views.box_files import BoxJournal, overlay_path
from wsol.views.box_formats import boxes_from_json, boxes_to_json
from wsol.views.output_folder import LONGEST, claim_folder, file_name, fit_name

SETTINGS = {"run": "runs/demo", "protocol": "gpca", "threshold": 0.1 + 0.2, "class": None}
STAMPS = dict.fromkeys(("0.jpg", "1.jpg", "2.jpg", "3.jpg", "a.jpg", "b.jpg"), "stamp")
FOUND = [Finding(1, "crow", 0.1 + 0.2, Box(1, 2, 30.5, 40)), Finding(0, "gull", 1e-9, Box(0, 0, 8, 8), True)]

KILLED = """
import os, signal
from pathlib import Path
from wsol.localization.localized import Finding
from wsol.records import Box
from wsol.views.box_files import BoxJournal
journal = BoxJournal(Path({folder!r}), {settings!r})
for number in range(3):
    journal.add(f"{{number}}.jpg", "stamp", (40, 30), [Finding(0, "gull", 0.5, Box(0, 0, number, 8))])
os.write(journal._descriptor, b'{{"file": "3.jpg", "wid')
os.kill(os.getpid(), signal.SIGKILL)
"""


def names_in(path: Path) -> list[str]:
    return [image["file"] for image in json.loads(path.read_text())["images"]]


def test_a_killed_process_keeps_what_it_has_done(tmp_path: Path) -> None:
    folder = tmp_path / "found"
    script = KILLED.format(folder=str(folder), settings=SETTINGS)
    done = subprocess.run([sys.executable, "-c", script], check=False, cwd=Path(__file__).parents[3])
    assert done.returncode == -signal.SIGKILL
    with BoxJournal(folder, SETTINGS) as journal:
        found = journal.done(STAMPS)
        assert list(found) == ["0.jpg", "1.jpg", "2.jpg"], "the line that was cut is not there"
        journal.add("3.jpg", "stamp", (40, 30), FOUND)
    with BoxJournal(folder, SETTINGS) as journal:
        journaled = journal.done(STAMPS)
        assert journaled == found | {"3.jpg": ((40, 30), FOUND)}
        files = journal.finish({"3.jpg": journaled["3.jpg"]} | found, ["gull", "crow"], {"b.jpg": "broken"})
    assert [path.name for path in files] == ["boxes.json", "boxes.csv", "boxes_coco.json"]
    assert names_in(files[0]) == ["3.jpg", "0.jpg", "1.jpg", "2.jpg"], "in the order that was asked for"
    assert json.loads(files[0].read_text())["unreadable"] == [{"file": "b.jpg", "reason": "broken"}]
    assert sorted(p.name for p in folder.iterdir()) == sorted(path.name for path in files), (
        "no journal is left"
    )


@pytest.mark.parametrize("cut", [1, 20, -1, -30])
def test_a_journal_cut_anywhere_is_continued(tmp_path: Path, cut: int) -> None:
    with BoxJournal(tmp_path, SETTINGS) as journal:
        for name in ("a.jpg", "b.jpg"):
            journal.add(name, "stamp", (9, 9), FOUND)
    content = journal.path.read_bytes()
    journal.path.write_bytes(content[:cut])
    with BoxJournal(tmp_path, SETTINGS) as journal:
        assert list(journal.done(STAMPS)) == ([] if cut > 0 else ["a.jpg"])
        for name in ("a.jpg", "b.jpg"):
            if name not in journal.done(STAMPS):
                journal.add(name, "stamp", (9, 9), FOUND)
    assert journal.path.read_bytes() == content


def test_a_photo_that_was_changed_is_not_done(tmp_path: Path) -> None:
    with BoxJournal(tmp_path, SETTINGS) as journal:
        journal.add("a.jpg", "old", (9, 9), FOUND)
        journal.add("b.jpg", "stamp", (9, 9), FOUND)
    with BoxJournal(tmp_path, SETTINGS) as journal:
        assert list(journal.done({"a.jpg": "new", "b.jpg": "stamp"})) == ["b.jpg"]
        journal.add("a.jpg", "new", (8, 8), FOUND)
    with BoxJournal(tmp_path, SETTINGS) as journal:
        assert journal.done({"a.jpg": "new"}) == {"a.jpg": ((8, 8), FOUND)}, "the later line counts"


def test_other_settings_are_refused_in_one_line(tmp_path: Path) -> None:
    with BoxJournal(tmp_path, SETTINGS) as journal:
        journal.add("a.jpg", "stamp", (9, 9), FOUND)
    with pytest.raises(
        RunFolderError, match=r"begun with other settings \(protocol 'gpca', now 'bas'\)"
    ) as caught:
        BoxJournal(tmp_path, SETTINGS | {"protocol": "bas"})
    assert "\n" not in str(caught.value)
    with BoxJournal(tmp_path, SETTINGS | {"protocol": "bas"}, overwrite=True) as journal:
        assert journal.done(STAMPS) == {}, "--overwrite begins again"


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(RunFolderError, match="not empty"):
        BoxJournal(tmp_path, SETTINGS)
    with BoxJournal(tmp_path, SETTINGS, overwrite=True) as journal:
        journal.finish({}, ["gull"], {})
    assert (tmp_path / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize("content", ["precious", "precious\n", '{"other": 1}\n'])
def test_a_file_of_the_users_is_not_taken_for_a_journal(tmp_path: Path, content: str) -> None:
    path = tmp_path / BoxJournal.NAME
    path.write_text(content)
    with pytest.raises(RunFolderError, match="not a journal"):
        BoxJournal(tmp_path, SETTINGS)
    assert path.read_text() == content


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / BoxJournal.NAME).symlink_to(tmp_path / "target")
    with pytest.raises(RunFolderError, match="cannot be opened"):
        BoxJournal(tmp_path / "out", SETTINGS)
    assert (tmp_path / "target").read_text() == ""


def test_two_processes_do_not_write_one_journal(tmp_path: Path) -> None:
    with BoxJournal(tmp_path, SETTINGS), pytest.raises(RunFolderError, match="another process is writing"):
        BoxJournal(tmp_path, SETTINGS)


@given(
    st.text(st.characters(exclude_categories=()), min_size=1),
    st.floats(0, 1),
    st.tuples(*[st.floats(-1e6, 1e6)] * 4),
)
def test_a_photo_comes_back_equal(name: str, score: float, box: tuple[float, float, float, float]) -> None:
    photo = (40, 30), [Finding(2, name, score, Box(*box), True)]
    record = json.loads(json.dumps(boxes_to_json(name, photo)))
    assert record["file"] == name
    assert boxes_from_json(record) == photo


def test_a_name_of_255_bytes_gets_an_overlay(tmp_path: Path) -> None:
    long, other = "a" * 251 + ".jpg", "a" * 250 + "b.jpg"
    (tmp_path / long).touch()  # the disk takes it
    paths = [overlay_path(tmp_path, f"sub/{name}") for name in (long, other, "short.jpg")]
    assert len(set(paths)) == 3
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        assert path.suffix == ".png"
    assert paths[2] == tmp_path / "overlays" / "sub" / "short.jpg.png"


@given(st.text(min_size=1), st.integers(30, LONGEST))
def test_names_always_fit(text: str, longest: int) -> None:
    for name in (
        file_name(text, ".png", longest),
        fit_name(text.encode(errors="ignore").decode(), ".png", longest),
    ):
        assert len(os.fsencode(name)) <= longest
        assert name.endswith(".png")
    assert "/" not in file_name(text, ".png", longest)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="cannot be used as a folder"):
        claim_folder(tmp_path / "file")
    assert claim_folder(tmp_path / "a" / "b").is_dir()
