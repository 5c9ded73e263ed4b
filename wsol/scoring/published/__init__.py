"""Published results on CUB-200-2011, as data to stand beside one's own.

- `gpca_cub.csv`: every row of the GPCA paper's localization table. `runs` is 3 where its authors ran a
  method, 1 where they quote that method's paper.
- `field_cub.csv`: other figures of the field, each by its authors' protocol. `source` says where a figure is
  printed, `chosen` what was chosen on the test images: the threshold, the checkpoint, or both.
- `gpca_nll.csv`: the paper's analysis of channel attention, three runs each.
- `gpca_complexity.csv`: what attentions cost by the paper's tables. C is the number of channels, H x W
  that of places, r the ratio of a bottleneck, h the number of heads. Times are seconds per epoch of a
  ResNet50 on CIFAR-100 with a batch of 256, on a GTX 1080 Ti.
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


@dataclass(frozen=True)
class PublishedComplexity:
    """A row of the paper's table: formulas for one attention, and seconds per epoch in a ResNet50."""

    parameters: str
    complexity: str
    training_seconds: float
    inference_seconds: float


def published_complexity() -> dict[str, PublishedComplexity]:
    """Attention with its options, such as "gpca variant=local" -> what it costs by the paper."""
    return {
        row["attention"]: PublishedComplexity(
            row["parameters"],
            row["complexity"],
            float(row["training_seconds"]),
            float(row["inference_seconds"]),
        )
        for row in _rows("gpca_complexity")
    }
