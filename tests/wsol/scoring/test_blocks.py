"""Blocks of rows in several processes: the same results, and a task that is opened once in a pass."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from wsol.scoring.blocks import BLOCK, choose_workers, over_rows

ROWS = 5 * BLOCK + 1


class Numbers:
    """A source whose content lies in a file, read when a process opens it, each time noted in a journal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.offset = int((folder / "offset").read_text())
        with (folder / "journal").open("a") as journal:
            print(os.getpid(), file=journal)

    def __reduce__(self) -> tuple[Any, ...]:
        return Numbers, (self.folder,)


def shifted(numbers: Numbers, rows: range) -> list[int]:
    return [row + numbers.offset for row in rows]


def numbers_in(folder: Path, offset: int) -> Numbers:
    (folder / "offset").write_text(str(offset))
    return Numbers(folder)


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_keep_their_order(tmp_path: Path, workers: int) -> None:
    parts = over_rows(partial(shifted, numbers_in(tmp_path, 3)), ROWS, workers)
    assert [n for part in parts for n in part] == [row + 3 for row in range(ROWS)]


def test_a_process_opens_the_source_once_in_a_pass(tmp_path: Path) -> None:
    task = partial(shifted, numbers_in(tmp_path, 0))
    (tmp_path / "journal").unlink()
    list(over_rows(task, ROWS, 2))
    opened = (tmp_path / "journal").read_text().split()
    assert 1 <= len(opened) <= 2
    assert len(set(opened)) == len(opened)
    assert str(os.getpid()) not in opened


def test_the_next_pass_sees_files_that_have_changed(tmp_path: Path) -> None:
    task = partial(shifted, numbers_in(tmp_path, 0))
    assert next(over_rows(task, ROWS, 2))[0] == 0
    numbers_in(tmp_path, 7)
    assert next(over_rows(task, ROWS, 2))[0] == 7


def test_a_few_images_stay_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsol.scoring.blocks.usable_cores", lambda: 6)
    assert choose_workers(10) == 1
    assert choose_workers(10**6) == 6
