"""Runs side by side: grouped over seeds, with mean, deviation and a t-test against one of the groups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wsol.config import Config
from wsol.config_file import load_config
from wsol.errors import ConfigError, DataError, RunFolderError
from wsol.registry import suggest
from wsol.scoring.published import PublishedResult
from wsol.scoring.seeds import group_over_seeds
from wsol.scoring.significance import ALPHA, Sample, p_value
from wsol.scoring.tables import KIND_WORDS

COLUMNS = {
    "top1_loc": "top-1 loc",
    "top5_loc": "top-5 loc",
    "gt_known_loc": "GT-known",
    "max_box_acc_v2": "MaxBoxAccV2",
    "top1_cls": "top-1 cls",
    "top5_cls": "top-5 cls",
}

_PROPER = {"adl": "ADL", "dgdm": "DGDM", "danet": "DANet", "acol": "ACoL", "spg": "SPG", "has": "HaS"}


@dataclass(frozen=True)
class RunScores:
    """What a run folder says of itself: its config and its scores.json."""

    path: Path
    config: Config
    scores: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> RunScores:
        if not (path / "config.yaml").is_file():
            raise RunFolderError(f"{path}: not a run folder: it has no config.yaml")
        try:
            scores = json.loads((path / "scores.json").read_text())
        except OSError:
            raise RunFolderError(f"{path}: not evaluated yet; run `wsol evaluate {path}`") from None
        except ValueError as error:
            raise RunFolderError(f"{path / 'scores.json'}: damaged ({error}); evaluate again") from None
        if not isinstance(scores, dict):
            raise RunFolderError(f"{path / 'scores.json'}: not what `wsol evaluate` writes; evaluate again")
        return cls(path, load_config(path / "config.yaml"), scores)

    def figures(self, protocol: str, threshold: str | None = None) -> dict[str, float]:
        """The figures under one protocol, at its own kind of threshold or at another one."""
        known = self.scores.get("protocols", {})
        if protocol not in known:
            hint = suggest(protocol, known)
            raise ConfigError(
                f"{self.path}: no scores under {protocol!r}{hint}; run `wsol evaluate --protocol {protocol}`"
            )
        found = dict(known[protocol])
        if threshold is not None:
            at = found.get("at", {})
            if threshold not in at:
                raise ConfigError(
                    f"{self.path}: no figures at the threshold {threshold!r}, only {', '.join(at)}"
                )
            found |= at[threshold]
        return {name: float(found[name]) for name in COLUMNS if name in found}


def method_name(config: Config) -> str:
    """A method as the field writes it: `ADL-GPCA`, `DANet`, `CAM-SE`."""
    model = config.model
    base = model.drop.name if model.drop.name != "none" else model.head.name
    name = _PROPER.get(base, base.upper())
    if model.head.name != "cam" and model.drop.name != "none":
        name = f"{_PROPER.get(model.head.name, model.head.name.upper())}-{name}"
    attention = model.attention.name
    return name if attention == "identity" else f"{name}-{attention.upper()}"


@dataclass(frozen=True)
class Row:
    """One line of the comparison.

    data: what the figures were measured on; only rows of one backbone and the same data compete.
    protocol: how. p: by figure, against the reference; None where no test is possible.
    """

    method: str
    backbone: str
    source: str
    data: str
    protocol: str
    figures: dict[str, Sample]
    published: bool = False
    p: dict[str, float | None] = field(default_factory=dict)
    best: frozenset[str] = frozenset()

    def significant(self, figure: str) -> bool:
        value = self.p.get(figure)
        return value is not None and value < ALPHA

    def competes_with(self, other: Row) -> bool:
        return (self.backbone, self.data) == (other.backbone, other.data)

    def testable(self, figure: str) -> bool:
        """Whether a t-test may use it: several runs, or a single figure because no more was published."""
        return figure in self.figures and (self.published or self.figures[figure].n > 1)


def group_runs(runs: Sequence[RunScores], protocol: str, threshold: str | None = None) -> list[Row]:
    """One row for each config, over its seeds."""
    digests = {r.scores.get("data_digest") for r in runs}
    if len(digests) > 1:
        raise DataError(
            f"these runs were evaluated on {len(digests)} different data sets: no comparison is fair"
        )
    rows = []
    for members in group_over_seeds(runs):
        first = members[0]
        table = [r.figures(protocol, threshold) for r in members]
        figures = {
            name: Sample.of([f[name] for f in table]) for name in COLUMNS if all(name in f for f in table)
        }
        source = f"ours, {len(members)} run{'s' if len(members) > 1 else ''}"
        data = _data_words(first.scores.get("data", "?"), int(first.scores.get("num_images", 0)))
        how = protocol if threshold is None else f"{protocol} at the {KIND_WORDS[threshold]} threshold"
        rows.append(
            Row(method_name(first.config), first.config.model.backbone.name, source, data, how, figures)
        )
    return rows


def published_rows(results: Iterable[PublishedResult], backbones: set[str]) -> list[Row]:
    """The published rows of these backbones, or all where none is named; those that name none always stay."""
    return [
        Row(
            method=r.method,
            backbone=r.backbone or "-",
            source=f"{r.source} ({r.year})",
            data=PUBLISHED_DATA,
            protocol="the authors'",
            figures=r.figures,
            published=True,
        )
        for r in results
        if not backbones or not r.backbone or r.backbone in backbones
    ]


def judge(rows: Sequence[Row], reference: Row | None) -> list[Row]:
    """The rows with their p-values against the reference, and the best of each figure and backbone marked."""
    judged = []
    for row in rows:
        rivals = [r for r in rows if r.competes_with(row)]
        best = frozenset(
            name
            for name, sample in row.figures.items()
            if all(sample.mean >= r.figures[name].mean for r in rivals if name in r.figures)
        )
        p: dict[str, float | None] = {}
        if reference is not None and row is not reference and row.competes_with(reference):
            p = {
                name: p_value(reference.figures[name], row.figures[name])
                for name in row.figures
                if row.testable(name) and reference.testable(name)
            }
        judged.append(replace(row, p=p, best=best))
    return judged


def caption(rows: Sequence[Row], reference: Row | None, left_out: int = 0) -> str:
    """What a reader of the table must know."""
    words = [f"protocol {reference.protocol}, in percent" if reference else "published results, in percent"]
    words.append("bold: best of its backbone")
    if reference and any(p is not None for row in rows for p in row.p.values()):
        words.append(f"*: p < {ALPHA} against {reference.method} ({reference.backbone})")
    if reference and any(row.published for row in rows):
        words.append("published figures: by their authors' own protocols")
        if reference.data != PUBLISHED_DATA:
            words.append(f"and on {PUBLISHED_DATA}, not on {reference.data}, so they do not compete")
    if left_out:
        words.append(f"{left_out} published rows of other backbones are left out")
    return "; ".join(words)


def _data_words(name: str, images: int) -> str:
    return f"{name} with {images:,} test images"


PUBLISHED_DATA = _data_words("cub", 5794)
