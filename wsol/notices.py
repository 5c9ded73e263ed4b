"""Notes for the user that stop nothing: a Python warning, or a line `wsol: note: ...` on the command line.

The library never prints. What is worth knowing goes through `note`, so a script can show, log or silence it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from wsol.printable import printable


class WsolNote(UserWarning):
    """Something that a user should know, and that stops nothing."""


def note(text: str) -> None:
    """Say something that is worth knowing."""
    warnings.warn(text, WsolNote, stacklevel=3)


@contextmanager
def notes_as_lines() -> Iterator[None]:
    """Within this block, every note is one line on the standard error stream."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", WsolNote)
        show = warnings.showwarning

        def show_line(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, WsolNote):
                print(f"wsol: note: {printable(' '.join(str(message).split()))}", file=sys.stderr)
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = show_line
        yield
