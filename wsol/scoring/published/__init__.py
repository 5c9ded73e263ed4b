"""Published results, as data to stand beside one's own: the tables of the GPCA paper, and the field's on CUB.

- `gpca_cub.csv`: every row of the GPCA paper's localization table. `runs` is 3 where its authors ran a
  method, 1 where they quote that method's paper. How its authors chose thresholds and checkpoints is not
  printed; quoted rows are marked as in the next file.
- `field_cub.csv`: other figures of the field, each by its authors' protocol. `source` says where a figure is
  printed, `chosen` what was chosen on the test images: the threshold, the checkpoint, or both.
- `gpca_classification.csv`: its classification tables on CIFAR-10, CIFAR-100, miniImageNet, ImageNet-32 and
  ImageNet, three runs each, 1 where other papers are quoted. `note` says where a row is misprinted.
- `gpca_ablation.csv`, `gpca_simplified.csv`: its ablation, and its table of GPCA-Local and GPCA-MHA, whose
  base model is not printed: GPCA's own figures there are those of ResNet50.
- `gpca_voc.csv`, `gpca_coco.csv`, `gpca_cityscapes.csv`: its tables of detection and segmentation. How often
  it ran on COCO is not printed; 3 is taken, as for the others.
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

from wsol.errors import ConfigError
from wsol.registry import suggest
from wsol.scoring.significance import Spread

NO_FIGURES = ("table", "data", "backbone", "method", "year", "runs", "source", "chosen", "note")

# The tables by name: what they are, and the file that holds their rows.
TABLES = {
    "cub": ("localization on CUB-200-2011", "gpca_cub"),
    "cifar10": ("classification on CIFAR-10", "gpca_classification"),
    "cifar100": ("classification on CIFAR-100", "gpca_classification"),
    "miniimagenet": ("classification on miniImageNet", "gpca_classification"),
    "imagenet32": ("classification on ImageNet-32", "gpca_classification"),
    "imagenet": ("classification on ImageNet", "gpca_classification"),
    "ablation": ("GPCA without its prior, and with fixed theta", "gpca_ablation"),
    "simplified": ("GPCA-Local and GPCA-MHA", "gpca_simplified"),
    "voc": ("detection on VOC2007", "gpca_voc"),
    "coco": ("detection on COCO", "gpca_coco"),
    "cityscapes": ("segmentation on Cityscapes", "gpca_cityscapes"),
}

# How many images the figures are of, where runs may be compared with them.
TEST_IMAGES = {
    "cub": 5794,
    "cifar10": 10_000,
    "cifar100": 10_000,
    "miniimagenet": 10_000,
    "imagenet32": 50_000,
    "imagenet": 50_000,
}


@dataclass(frozen=True)
class PublishedResult:
    """One row: a method on a backbone, its figures by name.

    source: where they are printed. year: None where it is not known. chosen: what was chosen on the test
    images. data: what they were measured on. note: what else a reader must know.
    """

    source: str
    backbone: str
    method: str
    year: int | None
    figures: dict[str, Spread]
    chosen: tuple[str, ...] = ()
    note: str = ""
    data: str = "cub"


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def published_results(table: str = "cub") -> list[PublishedResult]:
    """Every row of a table, the paper's first.

    Raises:
        ConfigError: no table has this name.
    """
    if table not in TABLES:
        raise ConfigError(f"no published table {table!r}{suggest(table, TABLES)}")
    rows = [row for row in _rows(TABLES[table][1]) if row.get("table", table) == table]
    paper = [_result(row, _paper_source(row), table) for row in rows]
    others = [_result(row, row["source"], table) for row in _rows("field_cub")] if table == "cub" else []
    return paper + others


def _paper_source(row: dict[str, str]) -> str:
    return "GPCA paper" if int(row["runs"]) > 1 else "GPCA paper, quoted"


def _result(row: dict[str, str], source: str, table: str) -> PublishedResult:
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
        data=row.get("data", table),
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
