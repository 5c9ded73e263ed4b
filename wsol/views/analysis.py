"""What the channel attention of runs has learned: NLL over seeds beside the paper's, and how masks spread."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wsol.class_names import display_names, find_label
from wsol.errors import ConfigError, RunFolderError
from wsol.localization.predictions import Predictions
from wsol.method_names import method_name
from wsol.registry import suggest
from wsol.run import Run
from wsol.runs.files import write_text
from wsol.scoring.mask_distribution import default_classes, distribution
from wsol.scoring.nll import DEFINITIONS, analyze_nll
from wsol.scoring.protocols import VIEWS
from wsol.scoring.published import published_nll
from wsol.scoring.significance import Spread
from wsol.text_table import html_table, text_table
from wsol.views.mask_figures import draw_mask_figures, write_mask_tables
from wsol.views.seeds import group_over_seeds


@dataclass(frozen=True)
class NllRow:
    """The negative log-likelihoods of one config over its seeds.

    nll: by definition (see `wsol.scoring.nll`), None where there is no attention. paper: the published figure
    of the same attention and backbone, where there is one.
    """

    method: str
    backbone: str
    num_runs: int
    num_classes: int
    nll: Mapping[str, Spread | None]
    paper: Spread | None

    @property
    def uniform(self) -> float:
        """ln C: what a model that knows nothing has."""
        return math.log(self.num_classes)


@dataclass(frozen=True)
class AnalysisFiles:
    """What was written for one run: the folder, and the classes whose masks are shown, if there are masks."""

    run: Path
    folder: Path
    classes: tuple[str, ...]

    def __str__(self) -> str:
        if not self.classes:
            return f"{self.run}: no attention, so no masks to show; wrote {self.folder}"
        return f"{self.run}: masks of {', '.join(self.classes)}; wrote {self.folder}"


@dataclass(frozen=True)
class Analysis:
    """The analysis of one run or several; printed, it is a table."""

    rows: tuple[NllRow, ...]
    written: tuple[AnalysisFiles, ...]

    def table(self) -> list[list[str]]:
        """One line for each config: mean and deviation over seeds, the uniform value, the paper's figure."""
        head = ["method", "backbone", "runs", *DEFINITIONS, "uniform ln C", "paper (C = 200)"]
        return [head, *([*_cells(row)] for row in self.rows)]

    def __str__(self) -> str:
        return text_table(self.table(), left=2) + "\n\n" + text_table(published_table())

    def _repr_html_(self) -> str:
        return html_table(self.table(), "negative log-likelihood of the true class") + html_table(
            published_table()
        )


def analyze_runs(
    runs: Sequence[Run], classes: Sequence[str] | None = None, out: Path | None = None
) -> Analysis:
    """Analyse the channel attention of evaluated runs, from their predictions of the test images.

    classes: names or labels for the figures of the masks; None for five at equal intervals. out: the folder
    for the files of a single run; None for the analysis folder of each run. Writes nll.csv, and for a run
    with attention mask_means, mask_histogram and mask_boxes as PNG and mask_means, mask_histogram and
    mask_quantiles as CSV.
    """
    if out is not None and len(runs) > 1:
        raise ConfigError("--out is for one run; several write to a folder each")
    for run in runs:
        if not run.config.model.head.knows_classes:
            raise ConfigError(f"{run.path}: its head knows no classes, so there is nothing to analyze")
    predictions = {run: find_test_predictions(run) for run in runs}
    labels = {
        run: find_labels(found, classes) for run, found in predictions.items() if found.masks is not None
    }
    groups = group_over_seeds(runs)
    nll = {run: analyze_nll(found) for run, found in predictions.items()}
    written = [
        _write_files(run, out or run.folder.analysis, predictions[run], nll[run], labels.get(run, []))
        for run in runs
    ]
    rows = [_nll_row(members, [nll[run] for run in members], predictions[members[0]]) for members in groups]
    return Analysis(tuple(rows), tuple(written))


def find_test_predictions(run: Run) -> Predictions:
    """The predictions of the test images, by the first view that the run has."""
    there = [view for view in VIEWS if run.folder.predictions_of("test", view).is_dir()]
    if not there:
        raise RunFolderError(f"{run.path}: no predictions of test images; run `wsol evaluate {run.path}`")
    return run.predictions("test", there[0])


def find_labels(predictions: Predictions, wanted: Sequence[str] | None) -> list[int]:
    """The labels of the wanted classes, given by name or label; None for some at equal intervals."""
    if not wanted:
        return default_classes(predictions)
    labels = []
    for name in wanted:
        label = find_label(name, predictions.classes)
        if label is None:
            raise ConfigError(f"unknown class {name!r}{suggest(name, predictions.classes)}")
        if label not in predictions.labels:
            raise ConfigError(f"class {name!r} has no test image")
        labels.append(label)
    return labels


def published_table() -> list[list[str]]:
    """The paper's figures, one line for each attention."""
    published = published_nll()
    backbones = list(dict.fromkeys(backbone for _, backbone in published))
    rows = [["paper, CUB-200-2011 (uniform: ln 200 = 5.2983)", *backbones]]
    for method in dict.fromkeys(method for method, _ in published):
        rows.append([method.upper(), *(_spread(published[method, b]) for b in backbones)])
    return rows


def _nll_row(
    members: Sequence[Run], found: Sequence[Mapping[str, float | None]], predictions: Predictions
) -> NllRow:
    config = members[0].config
    samples: dict[str, Spread | None] = {}
    for name in DEFINITIONS:
        values = [value for value in (own[name] for own in found) if value is not None]
        samples[name] = Spread.of(values) if values else None
    backbone = config.model.backbone.name
    paper = published_nll().get((config.model.attention.name, backbone))
    return NllRow(method_name(config), backbone, len(members), len(predictions.classes), samples, paper)


def _write_files(
    run: Run, folder: Path, predictions: Predictions, nll: Mapping[str, float | None], labels: Sequence[int]
) -> AnalysisFiles:
    rows = [["definition", "nll"]]
    rows += [[name, "n/a" if value is None else f"{value:.6f}"] for name, value in nll.items()]
    rows.append(["uniform", f"{math.log(len(predictions.classes)):.6f}"])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_text(folder / "nll.csv", text.getvalue(), parents=True)
    if not labels:
        return AnalysisFiles(run.path, folder, ())
    found = distribution(predictions, labels)
    write_mask_tables(found, folder)
    draw_mask_figures(found, folder, title=run.name)
    return AnalysisFiles(run.path, folder, tuple(display_names(found.classes)))


def _cells(row: NllRow) -> list[str]:
    figures = [row.nll[name] for name in DEFINITIONS]
    return [
        row.method,
        row.backbone,
        str(row.num_runs),
        *("n/a" if sample is None else _spread(sample) for sample in figures),
        f"{row.uniform:.4f}",
        "-" if row.paper is None else _spread(row.paper),
    ]


def _spread(sample: Spread) -> str:
    return f"{sample.mean:.4f}" if math.isnan(sample.std) else f"{sample.mean:.4f} ± {sample.std:.4f}"
