"""What an analysis of attentions gives: sentences about each run, and tables over seeds and the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wsol.scoring.mask_effect import MaskEffect
from wsol.scoring.nll import DEFINITIONS
from wsol.scoring.published import published_nll
from wsol.scoring.significance import Spread
from wsol.text_table import html_table, text_table

# Columns of the table about the masks: the figure of a `MaskEffect`, and how it is printed.
EFFECTS = {
    "mean": "mean mask",
    "std_channels": "std of channels",
    "std_images": "std of images",
    "auc": "AUC of true class",
    "correlation": "rank corr. with control",
    "changed": "classes changed",
}


@dataclass(frozen=True)
class AttentionRow:
    """The figures of one config over its seeds.

    nll: by definition (see `wsol.scoring.nll`), None where there is no attention. effects: by the names in
    `EFFECTS`, empty where there is no attention. paper: the published figure of the same attention and
    backbone, where there is one.
    """

    method: str
    backbone: str
    num_runs: int
    num_classes: int
    nll: Mapping[str, Spread | None]
    effects: Mapping[str, Spread]
    paper: Spread | None

    @property
    def uniform(self) -> float:
        """ln C: what a model that knows nothing has."""
        return math.log(self.num_classes)


@dataclass(frozen=True)
class AnalyzedRun:
    """One run: whether its attention acts, and the folder with what was written.

    images: which ones were looked at, "test" or "held-out".
    effect: None where there is no mask over the classes. scalars: each learned number of the attention as
    (epoch, value), by its name. nll: by definition.
    """

    run: Path
    method: str
    folder: Path
    images: str
    num_classes: int
    nll: Mapping[str, float | None]
    effect: MaskEffect | None
    scalars: Mapping[str, Sequence[tuple[float, float]]]

    def __str__(self) -> str:
        return "\n  ".join([*self._sentences(), *self._learned(), f"Wrote {self.folder}"])

    def _sentences(self) -> list[str]:
        prediction = f"{self.nll['nll_prediction']:.3f}"
        guess = f"ln C = {math.log(self.num_classes):.3f} is a guess"
        if self.effect is None:
            reason = "has no mask over the classes before the pooling, so nothing is said of what one does"
            return [f"{self.run}: {self.method} {reason} (NLL {prediction}; {guess})"]
        of_masks = {name: self.nll[name] for name in DEFINITIONS[1:]}
        masks = " and ".join(f"{value:.3f} ({name})" for name, value in of_masks.items() if value is not None)
        images = f"{self.effect.num_images} {self.images} images of {self.num_classes} classes"
        return [
            f"{self.run}: {self.method}, {images}",
            f"{_sentence(self.effect.verdict)}",
            f"{_sentence(self.effect.consequence)}",
            f"NLL of the true class: {prediction} by the prediction, {masks} by the mask; {guess}.",
        ]

    def _learned(self) -> list[str]:
        """The learned numbers of all attentions, also of those at taps."""
        if not self.scalars:
            return []
        first, last = (next(iter(self.scalars.values()))[i][0] for i in (0, -1))
        if first == last:
            values = (f"{name} {p[0][1]:.4g}" for name, p in self.scalars.items())
            return [f"After epoch {first:g}: {', '.join(values)}."]
        moved = (f"{name} {p[0][1]:.4g} to {p[-1][1]:.4g}" for name, p in self.scalars.items())
        return [f"After epoch {first:g} to after epoch {last:g}: {', '.join(moved)}."]


@dataclass(frozen=True)
class Analysis:
    """The analysis of one run or several; printed, it is sentences and tables."""

    rows: tuple[AttentionRow, ...]
    runs: tuple[AnalyzedRun, ...]

    def effect_table(self) -> list[list[str]]:
        """One line for each config with attention: how its masks differ and what they change."""
        head = ["method", "backbone", "runs", *EFFECTS.values()]
        rows = [
            [r.method, r.backbone, str(r.num_runs), *(_effect(name, r.effects[name]) for name in EFFECTS)]
            for r in self.rows
            if r.effects
        ]
        return [head, *rows]

    def table(self) -> list[list[str]]:
        """One line for each config: mean and deviation over seeds, the uniform value, the paper's figure."""
        head = ["method", "backbone", "runs", *DEFINITIONS, "uniform ln C", "paper (C = 200)"]
        return [head, *([*_cells(row)] for row in self.rows)]

    def __str__(self) -> str:
        parts = [str(run) for run in self.runs]
        if any(run.effect is not None for run in self.runs):
            parts += [text_table(self.effect_table(), left=2), text_table(self.table(), left=2)]
            parts.append(text_table(published_table()))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        from html import escape

        sentences = "".join(f"<p>{escape(str(run))}</p>" for run in self.runs)
        return (
            sentences
            + html_table(self.effect_table(), "whether the attention acts")
            + html_table(self.table(), "negative log-likelihood of the true class")
            + html_table(published_table())
        )


def published_table() -> list[list[str]]:
    """The paper's figures, one line for each attention."""
    published = published_nll()
    backbones = list(dict.fromkeys(backbone for _, backbone in published))
    rows = [["paper, CUB-200-2011 (uniform: ln 200 = 5.2983)", *backbones]]
    for method in dict.fromkeys(method for method, _ in published):
        rows.append([method.upper(), *(_spread(published[method, b]) for b in backbones)])
    return rows


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _effect(name: str, sample: Spread) -> str:
    if name == "changed":
        return f"{100 * sample.mean:.1f} %"
    return _spread(sample)


def _cells(row: AttentionRow) -> list[str]:
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
