"""Boxes found in photos as JSON and CSV; `wsol.views.coco` has the third format."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from wsol.localization.localized import Finding
from wsol.records import Box
from wsol.runs.files import json_text, write_text
from wsol.views.coco import coco_dict

# The size (width, height) of a photo, and what was found in it, best first.
PhotoBoxes: TypeAlias = tuple[tuple[int, int], Sequence[Finding]]

CSV_COLUMNS = ("file", "rank", "class", "score", "x0", "y0", "x1", "y1", "width", "height", "no_foreground")


def boxes_to_json(name: str, photo: PhotoBoxes) -> dict[str, Any]:
    """One photo as plain values."""
    (width, height), findings = photo
    boxes = [
        {
            "class": one.name,
            "label": one.label,
            "score": one.score,
            "box": list(one.box),
            "no_foreground": one.empty,
        }
        for one in findings
    ]
    return {"file": name, "width": width, "height": height, "boxes": boxes}


def boxes_from_json(record: Mapping[str, Any]) -> PhotoBoxes:
    """What `boxes_to_json` made, without the name."""
    findings = [
        Finding(one["label"], one["class"], one["score"], Box(*one["box"]), one["no_foreground"])
        for one in record["boxes"]
    ]
    return (record["width"], record["height"]), findings


def write_boxes(
    folder: Path,
    found: Mapping[str, PhotoBoxes],
    classes: Sequence[str],
    settings: Mapping[str, Any],
    unreadable: Mapping[str, str],
) -> list[Path]:
    """The files of BOX_FILES about what was found; returns their paths.

    found: by the name of the photo. settings: what the boxes were made with. unreadable: why, for each file
    that could not be read.
    """
    for name, make in BOX_FILES.items():
        write_text(folder / name, make(found, classes, settings, unreadable))
    return [folder / name for name in BOX_FILES]


def _json_file(
    found: Mapping[str, PhotoBoxes],
    classes: Sequence[str],
    settings: Mapping[str, Any],
    unreadable: Mapping[str, str],
) -> str:
    record = {
        **settings,
        "box": "x0, y0, x1, y1 in pixels",
        "images": [boxes_to_json(name, photo) for name, photo in found.items()],
        "unreadable": [{"file": name, "reason": reason} for name, reason in unreadable.items()],
    }
    return json_text(record)


def _coco_file(
    found: Mapping[str, PhotoBoxes],
    classes: Sequence[str],
    settings: Mapping[str, Any],
    unreadable: Mapping[str, str],
) -> str:
    description = ", ".join(f"{key} {value}" for key, value in settings.items())
    return json_text(coco_dict(found, classes, description))


# The files of boxes, and what makes the text of each: (found, classes, settings, unreadable), as above.
BOX_FILES: dict[str, Callable[..., str]] = {
    "boxes.json": _json_file,
    "boxes.csv": lambda found, *_: boxes_to_csv(found),
    "boxes_coco.json": _coco_file,
}


def boxes_to_csv(found: Mapping[str, PhotoBoxes]) -> str:
    """One line for each box, with its rank."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for name, (size, findings) in found.items():
        for rank, one in enumerate(findings, start=1):
            box = (f"{v:.2f}" for v in one.box)
            writer.writerow((name, rank, one.name, f"{one.score:.6f}", *box, *size, int(one.empty)))
    return text.getvalue()
