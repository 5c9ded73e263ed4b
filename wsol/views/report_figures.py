"""The report's numbers as cards, tables and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from wsol.class_names import display_names
from wsol.runs.history import read_csv
from wsol.scoring.protocols import HIT
from wsol.scoring.sweep import FoundBoxes, own_overlap, passes
from wsol.scoring.tables import KIND_WORDS
from wsol.views.charts import Series, line_chart
from wsol.views.page import Card, Cell, ResultRow
from wsol.views.results import Results

METRICS = {
    "top1_loc": "Top-1 loc",
    "top5_loc": "Top-5 loc",
    "gt_known_loc": "GT-known",
    "max_box_acc": "MaxBoxAcc",
    "max_box_acc_v2": "MaxBoxAccV2",
    "top1_cls": "Top-1 cls",
    "top5_cls": "Top-5 cls",
}
WORDS = {
    "top1_loc": "Top-1 localization",
    "top5_loc": "Top-5 localization",
    "gt_known_loc": "GT-known loc.",
    "max_box_acc": "MaxBoxAcc",
    "max_box_acc_v2": "MaxBoxAccV2",
    "top1_cls": "Top-1 classification",
    "top5_cls": "Top-5 classification",
}


def headline_cards(results: Results) -> list[Card]:
    """The protocol's own figures, each with its interval and the centre box where that has one."""
    centre = centre_figures(results.scores, results.scores["threshold_kind"])
    cards = []
    for key, label in WORDS.items():
        if key in results.scores:
            notes = []
            if key in results.scores.get("intervals", {}):
                low, high = results.scores["intervals"][key]
                notes.append(f"95 % in {low:.1f} to {high:.1f}")
            if key in centre:
                notes.append(f"centre box {centre[key]:.1f}")
            cards.append(Card(label, f"{results.scores[key]:.1f}", "\n".join(notes)))
    return cards


def centre_figures(scores: Mapping[str, Any], kind: str) -> dict[str, float]:
    """The centre box's figures, by the names that the localizer's have."""
    centre = scores["centre_box"]
    figures = {key: centre[key] for key in ("max_box_acc", "max_box_acc_v2") if key in centre}
    known = centre.get(f"gt_known_loc_{'oracle' if kind == 'oracle' else 'fixed'}")
    return figures if known is None else {**figures, "gt_known_loc": known}


def result_rows(results: Sequence[Results]) -> list[ResultRow]:
    """A row for each run and kind of threshold, the protocol's own first, and the centre box at the end.

    The best of several runs at the protocol's own kind of threshold is marked.
    """
    best = {key: max((r.scores[key] for r in results if key in r.scores), default=None) for key in METRICS}
    rows = []
    for tone, r in enumerate(results):
        own = r.scores["threshold_kind"]
        for kind in sorted(r.scores["at"], key=lambda kind: kind != own):
            figures = r.scores if kind == own else r.scores["at"][kind]
            cells = [
                Cell(
                    f"{figures[key]:.1f}" if key in figures else "",
                    len(results) > 1 and kind == own and figures.get(key) == best[key] is not None,
                )
                for key in METRICS
            ]
            threshold = f"{r.scores['at'][kind]['threshold']:.2f} {KIND_WORDS[kind]}"
            if kind == own:
                rows.append(ResultRow(r.name, r.protocol.name, f"{threshold} (the protocol's)", cells, tone))
            else:
                rows.append(ResultRow("", "", threshold, cells, baseline=True))
    first = results[0]
    for kind in ("fixed", "oracle"):
        centre = centre_figures(first.scores, kind)
        if kind == "oracle":
            centre = {"gt_known_loc": centre["gt_known_loc"]}
        cells = [Cell(f"{centre[key]:.1f}" if key in centre else "") for key in METRICS]
        name, protocol = ("Centre box", first.protocol.name) if kind == "fixed" else ("", "")
        rows.append(ResultRow(name, protocol, kind, cells, baseline=True))
    return rows


def class_table(results: Sequence[Results]) -> tuple[list[tuple[str, bool]], list[list[str]]]:
    """(columns, rows) of the figures of each class, runs beside each other."""
    wanted = (
        ("top1_cls", "top1_loc", "top5_loc", "gt_known_loc")
        if len(results) == 1
        else ("top1_loc", "gt_known_loc")
    )
    columns: list[tuple[str, bool]] = [("Class", False), ("Images", True)]
    columns += [
        (METRICS[key] if len(results) == 1 else f"{r.name} {METRICS[key]}", True)
        for r in results
        for key in wanted
    ]
    tables = [{row["class"]: row for row in r.scores["per_class"]} for r in results]
    classes = results[0].predictions.classes
    rows = []
    for name, shown in zip(classes, display_names(classes), strict=True):
        if name in tables[0]:
            figures = [
                f"{table[name][key]:.1f}" if key in table.get(name, {}) else ""
                for table in tables
                for key in wanted
            ]
            rows.append([shown, str(tables[0][name]["num_images"]), *figures])
    return columns, rows


def learning_charts(results: Sequence[Results]) -> list[Markup]:
    """Loss and accuracies over the epochs, from metrics.csv; [] for runs that have none."""
    logs = [read_csv(r.run / "metrics.csv") if (r.run / "metrics.csv").is_file() else [] for r in results]
    if len(results) == 1:
        losses = [_over_epochs("loss", logs[0], "loss", 1)]
        columns = {
            "accuracy": "training, top-1 cls",
            "val_top1_cls": "held out, top-1 cls",
            "val_top1_loc": "held out, top-1 loc",
            "val_gt_known_loc": "held out, GT-known",
        }
        shares = [
            _over_epochs(name, logs[0], column, 100, tone)
            for tone, (column, name) in enumerate(columns.items())
        ]
        title = "Accuracy while training"
    else:  # a colour is a run, and two lines of one colour are as many as can be told apart
        losses, shares = [], []
        for tone, (r, log) in enumerate(zip(results, logs, strict=True)):
            losses.append(_over_epochs(r.name, log, "loss", 1, tone))
            shares.append(_over_epochs(r.name, log, "accuracy", 100, tone))
            held_out = _over_epochs(f"{r.name}, held-out top-1 loc", log, "val_top1_loc", 100, tone)
            shares.append(replace(held_out, dashed=True, listed=False))
        title = "Training top-1 cls; held-out top-1 loc dashed"
    charts = [
        line_chart("Training loss", losses, "epoch", "loss", whole=True),
        line_chart(title, shares, "epoch", "%", (0, 100), whole=True),
    ]
    return [chart for chart in charts if chart]


def accuracy_charts(
    results: Sequence[Results],
    found: Sequence[FoundBoxes],
    live: Sequence[Mapping[str, NDArray[np.float64]]],
    thresholds: NDArray[np.float64],
) -> list[Markup]:
    """Accuracy over thresholds, and over the IoU that is asked for at the reported threshold."""
    single = len(results) == 1
    over_thresholds, over_overlap = [], []
    levels = np.arange(21) / 20
    for tone, (r, boxes, figures) in enumerate(zip(results, found, live, strict=True)):
        top, known = (
            Series(name, thresholds.tolist(), figures[name].round(2).tolist(), tone)
            for name in ("Top-1 loc", "GT-known")
        )
        if single:
            over_thresholds += [top, replace(known, tone=1)]
        else:
            over_thresholds.append(replace(top, name=r.name))
            over_thresholds.append(replace(known, name=f"{r.name}, GT-known", dashed=True, listed=False))
        at = int(np.argmin(np.abs(thresholds - r.threshold)))
        overlap = own_overlap(r.protocol, boxes.single, boxes.best)[:, at]
        shares = [100 * passes(overlap, level, r.protocol.strict_known).mean() for level in levels.tolist()]
        over_overlap.append(Series(r.name, levels.tolist(), np.round(shares, 2).tolist(), tone))
    title = "Accuracy over thresholds" if single else "Over thresholds: top-1 loc, GT-known dashed"
    return [
        line_chart(title, over_thresholds, "threshold", "%", (0, 100), cursor=True),
        line_chart(f"GT-known over IoU (hit: {HIT:g})", over_overlap, "IoU at least", "%", (0, 100)),
    ]


def _over_epochs(
    name: str, rows: Sequence[Mapping[str, float]], column: str, factor: float, tone: int = 0
) -> Series:
    have = [row for row in rows if column in row]
    return Series(name, [row["epoch"] for row in have], [factor * row[column] for row in have], tone)
