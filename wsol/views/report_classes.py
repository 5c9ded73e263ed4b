"""What the report says of the classes: a table, what confusing them costs, and a view of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wsol.class_names import display_names
from wsol.scoring.error_kinds import OUTCOMES
from wsol.scoring.judged import Judged
from wsol.scoring.metrics import metrics
from wsol.views.confusions import ClassPair, Misnamed, confusions, costly_pairs
from wsol.views.page import ClassRow, ConfusionSection, PairRow
from wsol.views.side_by_side import Measured

PAIRS = 12  # in the table of what costs most
SHOTS = 4  # pictures of each pair
OF_A_CLASS = ("top1_cls", "top1_loc", "top5_loc", "gt_known_loc")
OF_SEVERAL_RUNS = ("top1_loc", "gt_known_loc")
COST_NOTE = (
    "An image with a wrong class is a miss, even where the box of its true class passes. Such images are "
    "what a confusion costs: with the right class they would be top-1 hits. Points are percentage points of "
    "top-1 localization, at the protocol's threshold, over all test images. The pictures "
    "show the box of the true class. Choose a pair to see all its images."
)


def misnamed_images(measured: Sequence[Measured], judged: Sequence[Judged]) -> list[Misnamed]:
    """Of each run, the images with a wrong class, at the threshold that the protocol reports."""
    return [
        Misnamed.of(true, one.predictions.predicted, true.found.column(one.scores.threshold))
        for one, true in zip(measured, judged, strict=True)
    ]


def class_table(measured: Sequence[Measured]) -> tuple[list[tuple[str, bool]], list[ClassRow]]:
    """(columns, rows) of the figures of each class, runs beside each other; of a run only what it has."""
    several = len(measured) > 1
    keys = OF_SEVERAL_RUNS if several else OF_A_CLASS
    wanted = [(run, key) for run, one in enumerate(measured) for key in keys if key in one.scores]
    known = metrics()
    columns: list[tuple[str, bool]] = [("class", False), ("images", True)]
    columns += [
        (f"{measured[run].name} {known[key].short}" if several else known[key].short, True)
        for run, key in wanted
    ]
    tables = [{row.name: row for row in one.scores.per_class} for one in measured]
    classes = measured[0].predictions.classes
    rows = []
    for label, (name, shown) in enumerate(zip(classes, display_names(classes), strict=True)):
        if name in tables[0]:
            own = [table[name].figures if name in table else {} for table in tables]
            cells = [_percent(own[run], key) for run, key in wanted]
            rows.append(ClassRow(label, shown, [str(tables[0][name].num_images), *cells]))
    return columns, rows


def confusion_section(
    measured: Sequence[Measured], misnamed: Sequence[Misnamed], rows: NDArray[np.int64]
) -> ConfusionSection | None:
    """The pairs of classes that cost most; None where no class was predicted, or none was wrong.

    rows: those in the gallery, in its order.
    """
    if not any(len(run.rows) for run in misnamed):
        return None
    pairs = costly_pairs(misnamed)
    names = display_names(measured[0].predictions.classes)
    place = {row: i for i, row in enumerate(rows.tolist())}
    several = len(measured) > 1
    totals = [f"{one.name}: {run.cost():.1f}" for one, run in zip(measured, misnamed, strict=True)]
    if several:
        words = (
            f"Points of top-1 localization lost to wrong classes where the box passes: {', '.join(totals)}."
        )
    else:
        words = (
            f"Wrong classes cost {misnamed[0].cost():.1f} points of top-1 localization: "
            f"in {int(misnamed[0].passed.sum()):,} of {len(misnamed[0].rows):,} images with a wrong "
            "class the box passes."
        )
    points = [f"{one.name}, points" if several else "points" for one in measured]
    shown = [_pair_row(pair, misnamed, names, place) for pair in pairs[:PAIRS]]
    more = f" Shown are the {PAIRS} dearest of {len(pairs):,} pairs." if len(pairs) > PAIRS else ""
    return ConfusionSection(words, points, shown, COST_NOTE + more)


def _pair_row(
    pair: ClassPair, misnamed: Sequence[Misnamed], names: Sequence[str], place: Mapping[int, int]
) -> PairRow:
    a, b = pair.first.true, pair.first.named
    shots: list[int] = []
    for run in misnamed:
        chosen = (run.between(a, b) | run.between(b, a)) & run.passed
        shots += [place[row] for row in run.rows[chosen].tolist() if row in place]
    told = [
        f"{_count(sum(c.images))} of {names[c.true]} named {names[c.named]}, box passes in {sum(c.passed):,}"
        for c in (pair.first, pair.second)
        if sum(c.images)
    ]
    cells = [f"{v:.2f}" for v in pair.points]
    return PairRow((a, b), f"{names[a]} / {names[b]}", told, cells, list(dict.fromkeys(shots))[:SHOTS])


def class_views(
    measured: Sequence[Measured], judged: Sequence[Judged], misnamed: Sequence[Misnamed]
) -> dict[str, Any]:
    """Plain values for the views of single classes: figures, outcomes and confusions, by run and label."""
    known = metrics()
    keys = [key for key in OF_A_CLASS if any(key in one.scores for one in measured)]
    return {
        "figures": [{"label": known[key].short, "title": known[key].meaning} for key in keys],
        "runs": [_class_figures(one, true, keys) for one, true in zip(measured, judged, strict=True)],
        "confusions": [[c.true, c.named, list(c.images), list(c.passed)] for c in confusions(misnamed)],
    }


def _class_figures(measured: Measured, judged: Judged, keys: Sequence[str]) -> dict[str, Any]:
    """By label: the number of images, the figures, and how many images have each outcome."""
    predictions, scores = measured.predictions, measured.scores
    labels, classes = np.asarray(predictions.labels), predictions.classes
    at = judged.found.column(scores.threshold)
    kinds = np.array([judged.kinds(row, [at])[0] for row in range(len(labels))], dtype=np.int64)
    outcomes = np.zeros((len(classes), len(OUTCOMES)), dtype=np.int64)
    np.add.at(outcomes, (labels, kinds), 1)
    own = {row.name: row.figures for row in scores.per_class}
    return {
        "images": outcomes.sum(axis=1).tolist(),
        "all": [_percent(scores.figures, key) for key in keys],
        "of_class": [[_percent(own.get(name, {}), key) for key in keys] for name in classes],
        "outcomes": outcomes.tolist(),
    }


def _count(images: int) -> str:
    return "1 image" if images == 1 else f"{images:,} images"


def _percent(figures: Mapping[str, float], key: str) -> str:
    return f"{figures[key]:.1f}" if key in figures else ""
