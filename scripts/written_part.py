"""The part of a documentation page that a script writes: between two marks. The words around it stay."""

from __future__ import annotations

from pathlib import Path

from wsol.runs.files import write_text

END = "<!-- the end of what it writes -->"


def begin(script: str) -> str:
    """The mark before the part. script: its file name in scripts/."""
    return f"<!-- written by scripts/{script} -->"


def write_part(page: Path, script: str, text: str) -> None:
    """Put the text in place of what the script wrote before.

    Raises:
        ValueError: the page lacks a mark.
    """
    before, first, rest = page.read_text().partition(begin(script))
    _, last, after = rest.partition(END)
    if not first or not last:
        raise ValueError(f"{page}: lacks {begin(script)} or {END}")
    write_text(page, f"{before}{first}\n\n{text.strip()}\n\n{last}{after}")
