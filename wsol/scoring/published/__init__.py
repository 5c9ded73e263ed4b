"""Published results on CUB-200-2011, as data to stand beside one's own.

- `gpca_cub.csv`: every row of the GPCA paper's localization table. `runs` is 3 where its authors ran a
  method, 1 where they quote that method's paper.
- `field_cub.csv`: other figures of the field, each by its authors' protocol. `source` says where a figure is
  printed, `chosen` what was chosen on the test images: the threshold, the checkpoint, or both.
- `gpca_nll.csv`: the paper's analysis of channel attention, three runs each.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from importlib import resources

from wsol.scoring.significance import Spread

NO_FIGURES = ("backbone", "method", "year", "runs", "source", "chosen", "note")


@dataclass(frozen=True)
class PublishedResult:
    """One row: a method on a backbone, its figures by name.

    source: where they are printed. year: None where it is not known. chosen: what was chosen on the test
    images. note: what else a reader must know.
    """

    source: str
    backbone: str
    method: str
    year: int | None
    figures: dict[str, Spread]
    chosen: tuple[str, ...] = ()
    note: str = ""


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def published_results() -> list[PublishedResult]:
    """Every published localization result, the paper's first."""
    paper = [_result(row, _paper_source(row)) for row in _rows("gpca_cub")]
    return paper + [_result(row, row["source"]) for row in _rows("field_cub")]


def _paper_source(row: dict[str, str]) -> str:
    return "GPCA paper" if int(row["runs"]) > 1 else "GPCA paper, quoted"


def _result(row: dict[str, str], source: str) -> PublishedResult:
    runs = int(row.get("runs", 1))
    return PublishedResult(
        source=source,
        backbone=row["backbone"],
        method=row["method"],
        year=int(row["year"]) if row["year"] else None,
        figures={
            key: Spread(float(value), float(row.get(f"{key}_std") or math.nan), runs)
            for key, value in row.items()
            if value and not key.endswith("_std") and key not in NO_FIGURES
        },
        chosen=tuple(row.get("chosen", "").split()),
        note=row.get("note", ""),
    )


def published_nll() -> dict[tuple[str, str], Spread]:
    """(attention, backbone) -> the paper's negative log-likelihood over three runs."""
    return {
        (row["method"].lower(), row["backbone"]): Spread(float(row["nll"]), float(row["nll_std"]), 3)
        for row in _rows("gpca_nll")
    }
