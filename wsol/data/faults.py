"""What is wrong with a data set: raised at the first fault when a run needs it, listed in full by a check."""

from __future__ import annotations

from pathlib import Path

from wsol.errors import DataError


class Faults:
    """Where readers report what they find.

    By default a fault raises DataError, `file:line: reason`. With `collect` it is kept in `found` and the
    reader goes on with what it can still use. Notes are worth knowing but do not stop anything.
    """

    def __init__(self, collect: bool = False) -> None:
        self.collect = collect
        self.found: list[str] = []
        self.notes: list[str] = []

    def report(self, path: Path | str, line: int | None, reason: str) -> None:
        self.add(DataError.at(path, line, reason))

    def add(self, error: DataError) -> None:
        if not self.collect:
            raise error
        self.found.append(str(error))

    def note(self, path: Path | str, line: int | None, remark: str) -> None:
        self.notes.append(str(DataError.at(path, line, remark)))
