"""Published results on CUB-200-2011, as data to stand beside one's own.

- `gpca_cub.csv`: every row of the GPCA paper's localization table. `runs` is 3 where its authors ran a
  method, 1 where they quote that method's paper.
- `field_cub.csv`: other figures of the field. Each comes from its own protocol.
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

SOURCES = {"gpca_cub": "GPCA paper", "field_cub": "field"}


@dataclass(frozen=True)
class PublishedResult:
    """One row: a method on a backbone, its figures by name."""

    source: str
    backbone: str
    method: str
    year: int
    figures: dict[str, Spread]


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def published_results() -> list[PublishedResult]:
    """Every published localization result, the paper's first."""
    results = []
    for name, source in SOURCES.items():
        for row in _rows(name):
            runs = int(row.get("runs", 1))
            figures = {
                key: Spread(float(value), float(row.get(f"{key}_std") or math.nan), runs)
                for key, value in row.items()
                if value and not key.endswith("_std") and key not in ("backbone", "method", "year", "runs")
            }
            kind = source if runs > 1 or name == "field_cub" else f"{source}, quoted"
            results.append(PublishedResult(kind, row["backbone"], row["method"], int(row["year"]), figures))
    return results


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
