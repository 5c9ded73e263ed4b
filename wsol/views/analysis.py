"""Looks at the channel attention of runs: whether it acts, what it knows, and figures of its masks."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from wsol.class_names import find_label
from wsol.errors import ConfigError, RunFolderError
from wsol.localization.predictions import Predictions
from wsol.method_names import method_name
from wsol.registry import suggest
from wsol.run import Run, Split
from wsol.runs.files import write_text
from wsol.runs.history import Row
from wsol.scoring.mask_distribution import default_classes, distribution, rows_with_masks
from wsol.scoring.mask_effect import measure_masks
from wsol.scoring.nll import DEFINITIONS, analyze_nll
from wsol.scoring.protocols import VIEWS
from wsol.scoring.published import published_nll
from wsol.scoring.significance import Spread
from wsol.views.analysis_result import EFFECTS, Analysis, AnalyzedRun, AttentionRow
from wsol.views.figure_style import Format, check_formats
from wsol.views.mask_figures import draw_mask_figures, draw_scalars, write_mask_tables
from wsol.views.seeds import group_over_seeds


def analyze_runs(
    runs: Sequence[Run],
    classes: Sequence[str] | None = None,
    out: Path | None = None,
    formats: Sequence[str] = ("png",),
    split: Split = "test",
) -> Analysis:
    """Analyse the channel attention of evaluated runs, from their predictions of the test images.

    split: "val" for those of the images that were held out of training.

    classes: names or labels for the figures of the masks; None for five at equal intervals. out: the folder
    for the files of a single run; None for the analysis folder of each run. formats: of the figures, png, pdf
    or svg. Writes nll.csv, and for a run with attention mask_effect.csv, mask_means, mask_histogram and
    mask_quantiles as CSV, and the figures mask_means, mask_histogram, mask_boxes, mask_true_class and, where
    the attention has learned numbers, attention_scalars.
    """
    suffixes = check_formats(formats)
    if out is not None and len(runs) > 1:
        raise ConfigError("--out is for one run; several write to a folder each")
    for run in runs:
        if not run.config.model.head.knows_classes:
            raise ConfigError(f"{run.path}: its head knows no classes, so there is nothing to analyze")
    predictions = {run: find_predictions(run, split) for run in runs}
    labels = {
        run: find_labels(found, classes) for run, found in predictions.items() if found.masks is not None
    }
    groups = group_over_seeds(runs)
    analyzed = {}
    for run in runs:
        found = predictions[run]
        analyzed[run] = AnalyzedRun(
            run.path,
            method_name(run.config),
            out or (run.folder.analysis if split == "test" else run.folder.analysis / split),
            "test" if split == "test" else "held-out",
            len(found.classes),
            analyze_nll(found),
            measure_masks(found),
            find_scalars(run.history),
        )
    for run in runs:
        _write_files(run, analyzed[run], predictions[run], labels.get(run, []), suffixes)
    rows = [_row(members, [analyzed[run] for run in members]) for members in groups]
    return Analysis(tuple(rows), tuple(analyzed.values()))


def find_scalars(history: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    """What the attentions of a run logged at each epoch: (epoch, value) by name, the shortest that is unique.

    >>> find_scalars([{"epoch": 1, "loss": 3.0, "head.attention.theta1": 1.0}])
    {'theta1': [(1, 1.0)]}
    """
    columns = list(dict.fromkeys(name for row in history for name in row if "." in name))
    short = [name.rpartition(".")[2] for name in columns]
    names = short if len(set(short)) == len(short) else columns
    return {
        name: [(row["epoch"], row[column]) for row in history if column in row]
        for name, column in zip(names, columns, strict=True)
    }


def find_predictions(run: Run, split: Split) -> Predictions:
    """The predictions of the test or val images, by the first view that the run has."""
    kind = run.predicted(split)
    there = [view for view in VIEWS if run.folder.predictions_of(kind, view).is_dir()]
    if not there:
        how = "" if split == "test" else f" --split {split}"
        raise RunFolderError(
            f"{run.path}: no predictions of {split} images; run `wsol evaluate {run.path}{how}`"
        )
    return run.predictions(kind, there[0])


def find_labels(predictions: Predictions, wanted: Sequence[str] | None) -> list[int]:
    """The labels of the wanted classes, given by name or label; None for some at equal intervals."""
    if not wanted:
        return default_classes(predictions)
    labels = []
    for name in wanted:
        label = find_label(name, predictions.classes)
        if label is None:
            raise ConfigError(f"unknown class {name!r}{suggest(name, predictions.classes)}")
        if label not in predictions.labels[rows_with_masks(predictions)]:
            raise ConfigError(f"class {name!r} has no image with a mask to show")
        labels.append(label)
    return labels


def _row(members: Sequence[Run], analyzed: Sequence[AnalyzedRun]) -> AttentionRow:
    config = members[0].config
    nll: dict[str, Spread | None] = {}
    for name in DEFINITIONS:
        values = [value for value in (one.nll[name] for one in analyzed) if value is not None]
        nll[name] = Spread.of(values) if values else None
    effects = [one.effect for one in analyzed if one.effect is not None]
    backbone = config.model.backbone.name
    return AttentionRow(
        method_name(config),
        backbone,
        len(members),
        analyzed[0].num_classes,
        nll,
        {name: Spread.of([getattr(e, name) for e in effects]) for name in EFFECTS} if effects else {},
        published_nll().get((config.model.attention.name, backbone)),
    )


def _write_files(
    run: Run,
    analyzed: AnalyzedRun,
    predictions: Predictions,
    labels: Sequence[int],
    formats: Sequence[Format],
) -> None:
    folder, effect = analyzed.folder, analyzed.effect
    rows = [[name, "n/a" if value is None else f"{value:.6f}"] for name, value in analyzed.nll.items()]
    uniform = ["uniform", f"{math.log(analyzed.num_classes):.6f}"]
    _write_csv(folder / "nll.csv", [["definition", "nll"], *rows, uniform])
    title = f"{analyzed.method}, {run.config.model.backbone.name} ({run.name})"
    if analyzed.scalars:
        draw_scalars(analyzed.scalars, folder, title, formats)
    if effect is None:
        return
    low, high = effect.auc_interval
    figures = [
        [name, f"{getattr(effect, name):.6g}"] for name in (*EFFECTS, "least", "most", "gained", "lost")
    ]
    interval = [["auc_low", f"{low:.6g}"], ["auc_high", f"{high:.6g}"]]
    _write_csv(folder / "mask_effect.csv", [["figure", "value"], *figures, *interval, ["kind", effect.kind]])
    found = distribution(predictions, labels)
    write_mask_tables(found, folder)
    draw_mask_figures(found, predictions, folder, title, formats)


def _write_csv(path: Path, rows: Sequence[Sequence[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_text(path, text.getvalue(), parents=True)
