"""The figures: one table that holds the key, the labels, the unit and the direction of every one.

Tables, curves, the report, the log and comparisons read it, so a figure is called the same everywhere. A
figure is the mean of what each image counts (0 or 1, or a share), in percent: over the images, or over the
classes where a protocol says so. Those that depend on a threshold are given at every kind of threshold:

- ``fixed``: the protocol's own, which looks at no box;
- ``held_out``: the best for GT-known localization on held-out *training* images, by their boxes;
- ``oracle``: the best for GT-known localization on the test images themselves.

`max_box_acc` and `max_box_acc_v2` are the maxima of `box_acc` and `box_acc_v2` over all thresholds (for V2
each IoU has its own). `pxap` compares pixels with segmentations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wsol.registry import METRICS
from wsol.scoring.judge import TOP5
from wsol.scoring.judged import Judged

Kind = Literal["fixed", "held_out", "oracle"]
KINDS: dict[Kind, str] = {"fixed": "fixed", "held_out": "held out", "oracle": "oracle"}

# What each image counts at the threshold of a column: (N,) bool or float; None where it does not apply.
PerImage = Callable[[Judged, int], NDArray[Any] | None]


@dataclass(frozen=True)
class Metric:
    """One figure.

    key: its name in files. short: the heading of a column. long: its name in a sentence.
    meaning: one sentence for a reader who does not know it.
    per_image: what each image counts. None for the maxima and PxAP, which look at all images together.
    needs_threshold: whether it differs from threshold to threshold.
    headline: whether summaries show it; the others stand in the table of thresholds alone.
    """

    key: str
    short: str
    long: str
    meaning: str
    per_image: PerImage | None = None
    needs_threshold: bool = True
    headline: bool = True
    unit: str = "%"
    higher_is_better: bool = True


def register_metric(metric: Metric) -> Metric:
    """Make a figure known by its key: `wsol evaluate` computes it, every table shows it."""

    def factory() -> Metric:
        return metric

    METRICS.register(metric.key, metric.meaning)(factory)
    return metric


def metrics() -> dict[str, Metric]:
    """Every figure by its key, in the order in which tables show them."""
    return {key: METRICS.create(key) for key in METRICS.entries()}


def headline_metrics() -> dict[str, Metric]:
    """The figures that summaries show."""
    return {key: metric for key, metric in metrics().items() if metric.headline}


def _top(k: int) -> PerImage:
    def per_image(judged: Judged, at: int) -> NDArray[Any] | None:
        return None if judged.source.ranks is None else judged.top(k)[:, at]

    return per_image


def _classified(k: int) -> PerImage:
    def per_image(judged: Judged, at: int) -> NDArray[Any] | None:
        return None if judged.source.ranks is None else judged.source.ranks < k

    return per_image


for _metric in (
    Metric(
        "top1_loc",
        "top-1 loc",
        "top-1 localization",
        "the predicted class is right and the box passes",
        _top(1),
    ),
    Metric(
        "top5_loc",
        "top-5 loc",
        "top-5 localization",
        "the true class is among the five best and the box of its map passes",
        _top(TOP5),
    ),
    Metric(
        "gt_known_loc",
        "GT-known",
        "GT-known localization",
        "the box of the true class's map passes, whatever was predicted",
        lambda judged, at: judged.known()[:, at],
    ),
    Metric(
        "box_acc",
        "BoxAcc",
        "BoxAcc",
        "the single box reaches IoU 0.5",
        lambda judged, at: judged.judge.single(judged.found)[:, at],
        headline=False,
    ),
    Metric(
        "box_acc_v2",
        "BoxAccV2",
        "BoxAccV2",
        "the best contour, averaged over IoU 0.3, 0.5 and 0.7",
        lambda judged, at: np.mean(judged.judge.contours(judged.found)[:, :, at], axis=0),
        headline=False,
    ),
    Metric("max_box_acc", "MaxBoxAcc", "MaxBoxAcc", "BoxAcc at the best threshold for the test images"),
    Metric(
        "max_box_acc_v2",
        "MaxBoxAccV2",
        "MaxBoxAccV2",
        "BoxAccV2 at the best threshold of each IoU for the test images",
    ),
    Metric(
        "pxap",
        "PxAP",
        "PxAP",
        "area under the precision-recall curve of pixels, where segmentations exist",
        needs_threshold=False,
    ),
    Metric(
        "top1_cls",
        "top-1 cls",
        "top-1 classification",
        "the predicted class is right",
        _classified(1),
        needs_threshold=False,
    ),
    Metric(
        "top5_cls",
        "top-5 cls",
        "top-5 classification",
        "the true class is among the five best",
        _classified(TOP5),
        needs_threshold=False,
    ),
):
    register_metric(_metric)
