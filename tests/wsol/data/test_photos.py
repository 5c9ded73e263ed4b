"""Which photos a folder means: links are followed, and what cannot be read is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PIL import Image

from wsol.data.photos import list_photos, read_photos


@pytest.fixture
def holiday(tmp_path: Path) -> Path:
    for name in ("holiday/a.png", "holiday/day2/b.png", "store/c.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(tmp_path / name)
    return tmp_path / "holiday"


def test_linked_folders_are_searched(holiday: Path) -> None:
    (holiday / "linked").symlink_to(holiday.parent / "store")
    (holiday / "day2" / "up").symlink_to(holiday)
    photos, unreadable = list_photos([holiday])
    assert list(photos) == ["a.png", "day2/b.png", "linked/c.png"]
    assert unreadable == {}


def test_what_cannot_be_read_is_named_and_the_others_are_listed(
    holiday: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def refuse(path: Path) -> object:
        if Path(path).name == "day2":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    (holiday / "gone").symlink_to(holiday / "nowhere")
    (holiday / "gone.png").symlink_to(holiday / "nowhere.png")
    os.mkfifo(holiday / "pipe.png")
    monkeypatch.setattr(os, "scandir", refuse)
    photos, unreadable = list_photos([holiday])
    assert list(photos) == ["a.png", "gone.png", "pipe.png"]
    assert unreadable == {
        f"{holiday}/day2": f"{holiday}/day2: this folder cannot be read: Permission denied",
        f"{holiday}/gone": f"{holiday}/gone: a link whose target cannot be reached",
    }
    images, errors = read_photos(photos)
    assert list(images) == ["a.png"]
    assert errors["gone.png"] == f"{holiday}/gone.png: no such image file"
    assert "not a regular file" in errors["pipe.png"]
