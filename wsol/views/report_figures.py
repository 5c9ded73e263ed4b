"""The report's numbers as cards, tables and charts. Labels come from the table of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wsol.method_names import own_class_mark
from wsol.scoring.judged import Judged
from wsol.scoring.metrics import KINDS, Kind, Metric, headline_metrics, metrics
from wsol.scoring.scores import Scores
from wsol.views.charts import LineChart, Series
from wsol.views.page import Card, Cell, ResultRow
from wsol.views.side_by_side import Measured

Live = Mapping[str, NDArray[np.float64]]

OVER_THRESHOLDS = ("top1_loc", "gt_known_loc")  # drawn where several runs share a chart
THRESHOLDS_NOTE = (
    "The marked threshold is the one that the protocol itself reports. A fixed threshold uses no boxes. A "
    "held-out threshold was chosen on training images, by their boxes. The oracle's was chosen on these test "
    "images, by their boxes, so it is not known for new images. The centre box is a Gaussian in the middle "
    "of every image: it does not look at the image, and a localizer should beat it."
)


def shown_metrics(measured: Sequence[Measured]) -> list[Metric]:
    """The headline figures that at least one of the runs has."""
    return [m for key, m in headline_metrics().items() if any(key in one.scores for one in measured)]


def live_figures(judged: Judged) -> dict[str, NDArray[np.float64]]:
    """The headline figures in percent at each threshold, by the protocol's mean over all images, by key."""
    figures = {}
    for key, metric in headline_metrics().items():
        if metric.per_image is None or not metric.needs_threshold:
            continue
        columns = [metric.per_image(judged, at) for at in range(len(judged.found.thresholds))]
        present = [column for column in columns if column is not None]
        if len(present) == len(columns):
            figures[key] = judged.percent(np.stack(present, axis=1))
    return figures


def headline_cards(measured: Measured) -> list[Card]:
    """The protocol's own figures, each with its interval and the centre box where that has one."""
    scores = measured.scores
    centre = centre_figures(scores, scores.threshold_kind)
    cards = []
    for metric in shown_metrics([measured]):
        notes = []
        if metric.key in scores.intervals:
            low, high = scores.intervals[metric.key]
            notes.append(f"95 % in {low:.1f} to {high:.1f}")
        if metric.key in centre:
            notes.append(f"centre box {centre[metric.key]:.1f}")
        cards.append(Card(metric.long, f"{scores[metric.key]:.1f}", metric.unit, "\n".join(notes)))
    return cards


def centre_figures(scores: Scores, kind: Kind) -> dict[str, float]:
    """The centre box's figures, by the keys that the localizer's have."""
    centre = scores.centre_box
    figures = {key: centre[key] for key in ("max_box_acc", "max_box_acc_v2") if key in centre}
    known = centre.get(f"gt_known_loc_{'oracle' if kind == 'oracle' else 'fixed'}")
    return figures if known is None else {**figures, "gt_known_loc": known}


def result_rows(measured: Sequence[Measured]) -> list[ResultRow]:
    """A row for each run and kind of threshold, the protocol's own first, and the centre box at the end.

    The best of several runs at the protocol's own kind of threshold is marked.
    """
    shown = shown_metrics(measured)
    best = _best_figures(measured, shown) if len(measured) > 1 else {}
    rows = []
    for tone, one in enumerate(measured):
        own = one.scores.threshold_kind
        for kind in sorted(one.scores.at, key=lambda kind: kind != own):
            figures = one.scores.figures if kind == own else one.scores.at[kind].figures
            marked = best if kind == own else {}
            cells = [
                Cell(_percent(figures, m.key), m.key in marked and figures.get(m.key) == marked[m.key])
                for m in shown
            ]
            threshold = f"{one.scores.at[kind].threshold:g} {KINDS[kind]}"
            if kind == own:
                words = f"{threshold} (the protocol's)"
                name = one.name + own_class_mark(one.run.config, figures)
                rows.append(ResultRow(name, one.protocol.name, words, cells, tone))
            else:
                rows.append(ResultRow("", "", threshold, cells, baseline=True))
    first = measured[0]
    fixed, oracle = (centre_figures(first.scores, kind) for kind in ("fixed", "oracle"))
    maxima_once = {key: value for key, value in oracle.items() if key == "gt_known_loc"}
    for name, protocol, kind, centre in (
        ("Centre box", first.protocol.name, "fixed", fixed),
        ("", "", "oracle", maxima_once),
    ):
        cells = [Cell(_percent(centre, m.key)) for m in shown]
        rows.append(ResultRow(name, protocol, kind, cells, baseline=True))
    return rows


def _best_figures(measured: Sequence[Measured], shown: Sequence[Metric]) -> dict[str, float]:
    best = {}
    for metric in shown:
        choose = max if metric.higher_is_better else min
        best[metric.key] = choose(one.scores[metric.key] for one in measured if metric.key in one.scores)
    return best


def _percent(figures: Mapping[str, float], key: str) -> str:
    return f"{figures[key]:.1f}" if key in figures else ""


def learning_charts(measured: Sequence[Measured]) -> list[LineChart]:
    """Loss and accuracies over the epochs; [] for runs that have none."""
    known = metrics()
    logs = [one.run.history for one in measured]
    if len(measured) == 1:
        losses = [_over_epochs("loss", logs[0], "loss", 1)]
        columns = {"accuracy": f"training, {known['top1_cls'].short}"} | {
            f"val_{key}": f"held out, {known[key].short}" for key in ("top1_cls", "top1_loc", "gt_known_loc")
        }
        shares = [
            _over_epochs(name, logs[0], column, 100, tone)
            for tone, (column, name) in enumerate(columns.items())
        ]
        title = "Accuracy while training"
    else:  # a colour is a run, and two lines of one colour are as many as can be told apart
        losses, shares = [], []
        top = known["top1_loc"].short
        for tone, (one, log) in enumerate(zip(measured, logs, strict=True)):
            losses.append(_over_epochs(one.name, log, "loss", 1, tone))
            shares.append(_over_epochs(one.name, log, "accuracy", 100, tone))
            held_out = _over_epochs(f"{one.name}, held-out {top}", log, "val_top1_loc", 100, tone)
            shares.append(replace(held_out, dashed=True, listed=False))
        title = f"Training {known['top1_cls'].short}; held-out {top} dashed"
    charts = [
        LineChart("training_loss", "Training loss", losses, "epoch", "loss", whole=True),
        LineChart("training_accuracy", title, shares, "epoch", "%", (0, 100), whole=True),
    ]
    return [chart for chart in charts if chart.kept()]


def accuracy_charts(
    measured: Sequence[Measured], judged: Sequence[Judged], live: Sequence[Live]
) -> list[LineChart]:
    """Figures over thresholds, and GT-known localization over the IoU that is asked for, at the threshold
    that the protocol reports."""
    known = metrics()
    first, second = (known[key].short for key in OVER_THRESHOLDS)
    with_classes = any(OVER_THRESHOLDS[0] in figures for figures in live)
    over_thresholds, over_overlap = [], []
    levels = (np.arange(21) / 20).tolist()
    for tone, (one, found, figures) in enumerate(zip(measured, judged, live, strict=True)):
        thresholds = found.found.thresholds.tolist()
        lines = {
            key: Series(known[key].short, thresholds, v.round(2).tolist(), tone) for key, v in figures.items()
        }
        if len(measured) == 1:
            over_thresholds += [replace(line, tone=i) for i, line in enumerate(lines.values())]
        else:
            top, dashed = (lines.get(key) for key in OVER_THRESHOLDS)
            if top is not None:
                over_thresholds.append(replace(top, name=one.name))
            if dashed is not None:
                listed = top is None  # the only line of a run that predicts no classes
                name = one.name if listed else f"{one.name}, {dashed.name}"
                over_thresholds.append(replace(dashed, name=name, dashed=with_classes, listed=listed))
        at = found.found.column(one.scores.threshold)
        shares = found.percent(np.stack([found.known(level)[:, at] for level in levels], axis=1))
        over_overlap.append(Series(one.name, levels, shares.round(2).tolist(), tone))
    title = f"Over thresholds: {first}, {second} dashed" if with_classes else f"{second} over thresholds"
    if len(measured) == 1:
        title = "Accuracy over thresholds"
    return [
        LineChart("over_thresholds", title, over_thresholds, "threshold", "%", (0, 100), cursor=True),
        LineChart(
            "over_iou",
            f"{second} over the IoU that is asked for",
            over_overlap,
            "IoU at least",
            "%",
            (0, 100),
        ),
    ]


def _over_epochs(
    name: str, rows: Sequence[Mapping[str, float]], column: str, factor: float, tone: int = 0
) -> Series:
    have = [row for row in rows if column in row]
    return Series(name, [row["epoch"] for row in have], [factor * row[column] for row in have], tone)
