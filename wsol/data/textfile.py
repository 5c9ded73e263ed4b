"""Annotation files as numbered lines, and the few kinds of cells they hold. Strict: a cell that is not as it
should be raises ValueError with the reason, to which the caller adds file and line."""

from __future__ import annotations

import math
import re
from pathlib import Path, PurePosixPath

from wsol.data.faults import Faults
from wsol.data.regular_file import require_regular
from wsol.errors import DataError
from wsol.records import Box
from wsol.runs.files import LARGEST_TEXT

_WHOLE = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


def numbered_lines(path: Path, faults: Faults) -> list[tuple[int, str]]:
    """(line number, text) of every line of a UTF-8 file, blank ones too. LF and CRLF endings and a byte order
    mark are accepted."""
    try:
        require_regular(path, LARGEST_TEXT)
        raw = path.read_bytes()
    except DataError as error:
        raise DataError.at(path, None, str(error)) from None
    except OSError as error:
        raise DataError.at(path, None, f"cannot be read: {error.strerror}") from None
    lines = []
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            lines.append((number, line.removesuffix(b"\r").decode("utf-8")))
        except UnicodeDecodeError:
            faults.report(path, number, "not UTF-8 text")
    return lines


def whole(text: str) -> int:
    """A whole number of plain digits; Python's int() would also take '1_0', '+1' and other scripts."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{clipped(text)} is not a whole number")
    return int(text)


def number(text: str) -> float:
    """A finite decimal number."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise ValueError(f"{clipped(text)} is not a number")
    return value


def box_from_corner(x: float, y: float, width: float, height: float) -> Box:
    """The box of a corner and two sides, as CUB and COCO write it."""
    if not (width > 0 and height > 0):
        raise ValueError(f"box of width {width:g} and height {height:g}: both must be above zero")
    return checked_box(x, y, x + width, y + height)


def checked_box(x0: float, y0: float, x1: float, y1: float) -> Box:
    if not all(map(math.isfinite, (x0, y0, x1, y1))):
        raise ValueError("box with a corner that is not a finite number")
    if not (x1 > x0 and y1 > y0):
        raise ValueError(f"box ({x0:g}, {y0:g}, {x1:g}, {y1:g}) is empty: x1 > x0 and y1 > y0 are needed")
    return Box(x0, y0, x1, y1)


def relative_path(text: str) -> str:
    """A path below the data set, in normal form: 'a/b.jpg' for './a//b.jpg'. It may not lead out of it."""
    path = PurePosixPath(text)
    if not text or path == PurePosixPath("."):
        raise ValueError("empty path")
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"path {clipped(text)} leads out of the data set")
    if not text.isprintable():
        raise ValueError(f"path {clipped(text)} holds unprintable characters")
    return str(path)


def clipped(text: str) -> str:
    """A cell for a message, quoted, cut where it is long."""
    return repr(text) if len(text) <= 60 else repr(text[:57] + "...")


def fit_box(
    box: Box, size: tuple[int, int] | None, path: Path, line: int | None, faults: Faults
) -> Box | None:
    """The part of a box inside its image; None, and a fault, where no part is. Without a size, as it is."""
    if size is None:
        return box
    width, height = size
    inside = box.clip(width, height)
    if inside.area <= 0:
        faults.report(path, line, f"box {_shown(box)} lies outside the image of {width} x {height}")
        return None
    if inside != box:
        faults.note(path, line, f"box {_shown(box)} clipped to the image of {width} x {height}")
    return inside


def _shown(box: Box) -> str:
    return "(" + ", ".join(f"{v:g}" for v in box) + ")"
