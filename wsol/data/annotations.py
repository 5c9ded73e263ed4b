"""Annotation files for a user's own images: a CSV table or a COCO file.

CSV: a header and then one row for each box, so that an image with two boxes has two rows::

    image,label,split,x0,y0,x1,y1
    robins/a.jpg,robin,train,12,30,200,180

Only `image` is needed. The other columns may be left out and their cells left empty, but the four of the box
only together.

COCO: `images`, `annotations` and `categories` with `bbox` as [x, y, width, height]. An image may carry a
`split`, which the format itself does not know. Boxes marked `iscrowd` are left out.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wsol.data.faults import Faults
from wsol.data.regular_file import require_regular
from wsol.data.textfile import box_from_corner, checked_box, clipped, number, numbered_lines, relative_path
from wsol.errors import DataError
from wsol.records import SPLITS, Box
from wsol.runs.files import LARGEST_TEXT

COLUMNS = ("image", "label", "split", "x0", "y0", "x1", "y1")


@dataclass
class ListedImage:
    """One image as a file lists it. `line` is the line of its first row, None in a COCO file."""

    line: int | None
    label: str | None = None
    split: str | None = None
    boxes: list[tuple[int | None, Box]] = field(default_factory=list)

    def agree(self, label: str | None, split: str | None) -> None:
        """Take over a label and a split, or raise ValueError where others were given before."""
        for what, known, given in (("label", self.label, label), ("split", self.split, split)):
            if known is not None and given is not None and known != given:
                raise ValueError(f"{what} {given!r} for an image that had {what} {known!r} before")
        self.label = self.label or label
        self.split = self.split or split


Reader = Callable[[Path, Faults], dict[str, ListedImage]]


def read_annotations(path: Path, faults: Faults) -> dict[str, ListedImage]:
    """The listed images by their path below the data set."""
    readers: dict[str, Callable[[Path, Faults], dict[str, ListedImage]]] = {
        ".csv": _read_csv,
        ".json": _read_coco,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError.at(path, None, "annotations are a .csv table or a COCO .json file")
    return reader(path, faults)


def _read_csv(path: Path, faults: Faults) -> dict[str, ListedImage]:
    listed: dict[str, ListedImage] = {}
    for line, cells in _csv_rows(path, faults):
        try:
            name = relative_path(cells["image"])
            image = listed.setdefault(name, ListedImage(line))
            image.agree(_label(cells.get("label", "")) or None, _split(cells.get("split", "")))
            corners = [cells.get(c, "") for c in COLUMNS[3:]]
            if any(corners):
                image.boxes.append((line, checked_box(*map(number, corners))))
        except ValueError as error:
            faults.report(path, line, str(error))
    return listed


def _csv_rows(path: Path, faults: Faults) -> Iterator[tuple[int, Mapping[str, str]]]:
    """(line, cells by column) of each row. Rows are lines: an open quote is a fault of the line it is in."""
    header: list[str] = []
    for line, text in numbered_lines(path, faults):
        try:
            cells = [cell.strip() for cell in next(csv.reader([text], strict=True), [])]
        except csv.Error as error:
            faults.report(path, line, f"not a row of a CSV table: {error}")
            continue
        if not any(cells):
            continue
        if not header:
            header = _header(cells, path, line)
        elif len(cells) != len(header):
            faults.report(path, line, f"{len(cells)} cells where the header has {len(header)}")
        else:
            yield line, dict(zip(header, cells, strict=True))
    if not header:
        faults.report(path, 1, f"empty; expected a header such as {','.join(COLUMNS)}")


def _header(cells: Sequence[str], path: Path, line: int) -> list[str]:
    """The columns, or an error that ends the reading: no row can be understood without them."""
    header = [c.lower() for c in cells]
    strange = [c for c in header if c not in COLUMNS]
    given = [c for c in COLUMNS[3:] if c in header]
    if strange or len(set(header)) != len(header) or "image" not in header or len(given) not in (0, 4):
        shown = clipped(",".join(cells))
        raise DataError.at(path, line, f"expected the columns {','.join(COLUMNS)} (or some), got {shown}")
    return header


def _read_coco(path: Path, faults: Faults) -> dict[str, ListedImage]:
    document = _read_json(path)
    names: dict[Any, str] = {}
    listed: dict[str, ListedImage] = {}
    categories: dict[int, str] = {}
    first_category: dict[str, int] = {}  # by name

    def each(part: str, take: Callable[[Mapping[str, Any]], None]) -> None:
        entries = document.get(part)
        if not isinstance(entries, list):
            raise DataError.at(path, 1, f"not a COCO file: no list {part!r}")
        for i, entry in enumerate(entries):
            try:
                if not isinstance(entry, dict):
                    raise ValueError("not an object")
                take(entry)
            except ValueError as error:
                faults.report(path, None, f"{part}[{i}]: {error}")

    def take_category(entry: Mapping[str, Any]) -> None:
        category, name = _new_id(entry, categories), _label(_string(entry, "name"))
        first = first_category.setdefault(name, category)
        if first != category:
            remark = f"categories {first} and {category} are both called {name!r}: they become one class"
            faults.note(path, None, remark)
        categories[category] = name

    def take_image(entry: Mapping[str, Any]) -> None:
        image_id, name = _new_id(entry, names), relative_path(_string(entry, "file_name"))
        if name in listed:
            raise ValueError(f"{name} is listed twice")
        split = _split(_string(entry, "split")) if entry.get("split") is not None else None
        names[image_id] = name
        listed[name] = ListedImage(None, split=split)

    def take_annotation(entry: Mapping[str, Any]) -> None:
        if entry.get("iscrowd"):
            return
        image_id, category = _whole(entry, "image_id"), _whole(entry, "category_id")
        if image_id not in names:
            raise ValueError(f"unknown image_id {image_id}")
        if category not in categories:
            raise ValueError(f"unknown category_id {category}")
        image = listed[names[image_id]]
        image.agree(categories[category], None)
        image.boxes.append((None, box_from_corner(*_four_numbers(entry))))

    each("categories", take_category)
    each("images", take_image)
    each("annotations", take_annotation)
    return listed


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        require_regular(path, LARGEST_TEXT)
        document = json.loads(path.read_bytes().decode("utf-8-sig"))
    except DataError as error:
        raise DataError.at(path, None, str(error)) from None
    except OSError as error:
        raise DataError.at(path, None, f"cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise DataError.at(path, error.lineno, f"not JSON: {error.msg}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError.at(path, line, "not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise DataError.at(path, 1, f"not JSON that can be read: {clipped(str(error))}") from None
    if not isinstance(document, dict):
        raise DataError.at(path, 1, "not a COCO file: no object at the top")
    return document


def _label(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"label {clipped(text)} holds unprintable characters")
    return text


def _split(text: str) -> str | None:
    if text and text not in SPLITS:
        raise ValueError(f"split {clipped(text)}: expected {', '.join(SPLITS)}")
    return text or None


def _string(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key}: expected text, got {clipped(repr(value))}")
    return value


def _whole(entry: Mapping[str, Any], key: str) -> int:
    value = entry.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{key}: expected a whole number, got {clipped(repr(value))}")
    return value


def _new_id(entry: Mapping[str, Any], known: Mapping[Any, Any]) -> int:
    value = _whole(entry, "id")
    if value in known:
        raise ValueError(f"id {value} is listed twice")
    return value


def _four_numbers(entry: Mapping[str, Any]) -> list[float]:
    bbox = entry.get("bbox")
    right = isinstance(bbox, list) and len(bbox) == 4
    if not right or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in bbox or ()):
        raise ValueError(f"bbox: expected [x, y, width, height], got {clipped(repr(bbox))}")
    try:
        return [float(v) for v in bbox or ()]
    except OverflowError:
        raise ValueError("bbox: number too large") from None
