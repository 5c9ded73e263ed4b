"""Boxes found in photos, as files: boxes.json, boxes.csv and boxes_coco.json.

While photos are being looked at, `wsol.views.box_journal` keeps what is done.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsol.localization.localized import Finding
from wsol.records import Box
from wsol.runs.files import write_json, write_text
from wsol.views.coco import coco_dict

CSV_COLUMNS = ("file", "rank", "class", "score", "x0", "y0", "x1", "y1", "width", "height", "no_foreground")


@dataclass(frozen=True)
class PhotoBoxes:
    """What was found in one photo of `size` (width, height), best first."""

    size: tuple[int, int]
    findings: tuple[Finding, ...]

    def to_json(self, name: str) -> dict[str, Any]:
        return {
            "file": name,
            "width": self.size[0],
            "height": self.size[1],
            "boxes": [
                {
                    "class": one.name,
                    "label": one.label,
                    "score": one.score,
                    "box": list(one.box),
                    "no_foreground": one.empty,
                }
                for one in self.findings
            ],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> PhotoBoxes:
        findings = [
            Finding(one["label"], one["class"], one["score"], Box(*one["box"]), one["no_foreground"])
            for one in record["boxes"]
        ]
        return cls((record["width"], record["height"]), tuple(findings))


def write_boxes(
    folder: Path,
    found: Mapping[str, PhotoBoxes],
    classes: Sequence[str],
    settings: Mapping[str, Any],
    unreadable: Mapping[str, str] | None = None,
) -> list[Path]:
    """boxes.json, boxes.csv and boxes_coco.json of what was found; returns their paths.

    found: by the name of the photo. settings: what the boxes were made with. unreadable: why, for each file
    that could not be read.
    """
    record = {
        **settings,
        "box": "x0, y0, x1, y1 in pixels",
        "images": [photo.to_json(name) for name, photo in found.items()],
        "unreadable": [{"file": name, "reason": reason} for name, reason in (unreadable or {}).items()],
    }
    description = ", ".join(f"{key} {value}" for key, value in settings.items())
    paths = [folder / name for name in ("boxes.json", "boxes.csv", "boxes_coco.json")]
    write_json(paths[0], record)
    write_text(paths[1], _to_csv(found))
    write_json(paths[2], coco_dict(found, classes, description))
    return paths


def _to_csv(found: Mapping[str, PhotoBoxes]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for name, photo in found.items():
        for rank, one in enumerate(photo.findings, start=1):
            box = (f"{v:.2f}" for v in one.box)
            writer.writerow((name, rank, one.name, f"{one.score:.6f}", *box, *photo.size, int(one.empty)))
    return text.getvalue()
