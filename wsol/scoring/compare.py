"""Runs side by side: grouped over seeds, with mean, deviation and a t-test against one of the groups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wsol.config import Config
from wsol.config_file import config_to_dict, load_config
from wsol.errors import ConfigError, DataError, RunFolderError
from wsol.registry import suggest
from wsol.scoring.published import PublishedResult
from wsol.scoring.significance import ALPHA, Sample, p_value

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
        return cls(path, load_config(path / "config.yaml"), scores)

    def figures(self, protocol: str) -> dict[str, float]:
        """The headline figures under one protocol."""
        known = self.scores.get("protocols", {})
        if protocol not in known:
            hint = suggest(protocol, known)
            raise ConfigError(
                f"{self.path}: no scores under {protocol!r}{hint}; run `wsol evaluate --protocol {protocol}`"
            )
        return {name: float(known[protocol][name]) for name in COLUMNS if name in known[protocol]}


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
    """One line of the comparison. p: by figure, against the reference; None where no test is possible."""

    method: str
    backbone: str
    source: str
    figures: dict[str, Sample]
    p: dict[str, float | None]
    best: frozenset[str]

    def significant(self, figure: str) -> bool:
        value = self.p.get(figure)
        return value is not None and value < ALPHA


def group_runs(runs: Sequence[RunScores], protocol: str) -> list[Row]:
    """One row for each config, whatever its seed, the folder of its data and the machine."""
    digests = {r.scores.get("data_digest") for r in runs}
    if len(digests) > 1:
        raise DataError(
            f"these runs were evaluated on {len(digests)} different data sets: no comparison is fair"
        )
    groups: dict[str, list[RunScores]] = {}
    for run in runs:
        config = replace(run.config, train=replace(run.config.train, seed=0))
        record = config_to_dict(config)
        for section, key in (("data", "root"), ("data", "workers"), ("train", "device")):
            record[section].pop(key)
        groups.setdefault(json.dumps(record, sort_keys=True), []).append(run)
    rows = []
    for members in groups.values():
        config = members[0].config
        seeds = [r.config.train.seed for r in members]
        if len(set(seeds)) != len(seeds):
            twice = ", ".join(str(r.path) for r in members)
            raise ConfigError(f"two runs of one config and one seed are not two samples: {twice}")
        table = [r.figures(protocol) for r in members]
        figures = {
            name: Sample.of([f[name] for f in table]) for name in COLUMNS if all(name in f for f in table)
        }
        source = f"ours, {len(members)} run{'s' if len(members) > 1 else ''}"
        rows.append(Row(method_name(config), config.model.backbone.name, source, figures, {}, frozenset()))
    return rows


def published_rows(results: Iterable[PublishedResult], backbones: set[str]) -> list[Row]:
    """The published rows of these backbones, or all where none is named."""
    return [
        Row(r.method, r.backbone, f"{r.source} ({r.year})", r.figures, {}, frozenset())
        for r in results
        if not backbones or r.backbone in backbones
    ]


def judge(rows: Sequence[Row], reference: Row | None) -> list[Row]:
    """The rows with their p-values against the reference, and the best of each figure and backbone marked."""
    judged = []
    for row in rows:
        rivals = [r for r in rows if r.backbone == row.backbone]
        best = frozenset(
            name
            for name, sample in row.figures.items()
            if all(sample.mean >= r.figures[name].mean for r in rivals if name in r.figures)
        )
        p: dict[str, float | None] = {}
        if reference is not None and row is not reference:
            shared = row.figures.keys() & reference.figures.keys()
            p = {name: p_value(reference.figures[name], row.figures[name]) for name in shared}
        judged.append(replace(row, p=p, best=best))
    return judged
