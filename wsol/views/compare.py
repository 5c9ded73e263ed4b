"""Runs side by side: grouped over seeds, with mean, deviation and a t-test against one of the groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wsol.errors import ConfigError, DataError
from wsol.method_names import method_name, network_name, own_class_mark
from wsol.registry import suggest
from wsol.run import Run
from wsol.scoring.metrics import KINDS, Kind, headline_metrics
from wsol.scoring.protocols import Protocol, find_protocols
from wsol.scoring.published import TABLES, TEST_IMAGES, PublishedResult, published_results
from wsol.scoring.published.figures import comparable_metrics
from wsol.scoring.significance import ALPHA, Spread, p_value
from wsol.views.comparison import CHOSEN_MARKS, ComparedRow, Comparison
from wsol.views.seeds import group_over_seeds


def compare_runs(
    runs: Sequence[Run],
    protocol: str | None = None,
    threshold: Kind | None = None,
    published: bool | str = False,
    backbones: Sequence[str] = (),
) -> Comparison:
    """Evaluated runs side by side: one row for each config over its seeds, the first one the reference.

    protocol: a name; None for that of the first run. threshold: the kind of threshold of the runs' figures;
    None for the kind that the protocol itself reports. published: add the published results of the same
    backbones, or of `backbones` where some are named; the name of a table, or True for that of the runs' data
    set. These name no backbone for some methods, which are then left out.
    """
    if not runs and not published:
        raise ConfigError("nothing to compare: name run folders, or ask for --published")
    if protocol is not None:
        find_protocols(protocol)  # an unknown name ends here, also where only published results are shown
    rows = group_runs(runs, runs[0].protocol(protocol), threshold) if runs else []
    reference = rows[0] if rows else None
    left_out = 0
    if published is not False:
        results = published_results(published_table(published, runs))
        _refuse_unknown(backbones, {r.backbone for r in results})
        own = {row.backbone for row in rows}
        shown = published_rows(results, set(backbones) or own)
        if backbones:
            shown = [row for row in shown if row.backbone in backbones]
        rows, left_out = rows + shown, len(results) - len(shown)
    marked = mark_rows(rows, reference)
    return Comparison(tuple(marked), caption(marked, reference, left_out))


def published_table(published: bool | str, runs: Sequence[Run]) -> str:
    """The name of the table that is meant: the one given, that of the runs' data set, or else `cub`.

    Raises:
        ConfigError: the runs are of classifiers, and nothing is published on their data set.
    """
    if isinstance(published, str):
        return published
    data = runs[0].scores.data if runs else "cub"
    if data in TABLES:
        return data
    if runs[0].config.network is not None:
        known = ", ".join(TABLES)
        raise ConfigError(f"no published table is of {data}; name one after --published: {known}")
    return "cub"


def group_runs(runs: Sequence[Run], protocol: Protocol, threshold: Kind | None = None) -> list[ComparedRow]:
    """One row for each config, over its seeds."""
    refuse_different_images(runs)
    how = protocol.name if threshold is None else f"{protocol.name} at the {KINDS[threshold]} threshold"
    rows = []
    for members in group_over_seeds(runs):
        config, evaluation = members[0].config, members[0].scores
        table = [run_figures(run, protocol, threshold) for run in members]
        figures = {
            key: Spread.of([own[key] for own in table])
            for key in headline_metrics()
            if all(key in own for own in table)
        }
        source = f"ours, {len(members)} run{'s' if len(members) > 1 else ''}"
        source += own_class_mark(config, figures)
        data = _data_words(evaluation.data, evaluation.num_images)
        rows.append(ComparedRow(method_name(config), network_name(config), source, data, how, figures))
    return rows


def refuse_different_images(runs: Sequence[Run]) -> None:
    """Raise DataError where the runs were not scored on the same images with the same truth.

    How the training images were split does not matter. Where an old run cannot tell its test images, the
    whole data set must be the same.
    """
    if len({run.scores.data_digest for run in runs}) == 1:
        return
    digests = {run.test_digest for run in runs}
    if len(digests) > 1 or "" in digests:
        raise DataError(
            f"these runs were evaluated on {max(len(digests), 2)} different sets of test images and cannot "
            "be compared"
        )


def run_figures(run: Run, protocol: Protocol, threshold: Kind | None = None) -> dict[str, float]:
    """The figures of one run under one protocol, at its own kind of threshold or at another one.

    Raises DataError where the run was not measured by this version of the protocol.
    """
    evaluation = run.scores
    again = f"run `wsol evaluate {run.path} --protocol {protocol.name}`"
    if protocol.name not in evaluation:
        hint = suggest(protocol.name, evaluation)
        raise DataError(f"{run.path}: no scores under {protocol.name!r}{hint}; {again}")
    scores = evaluation[protocol.name]
    if scores.version != protocol.version:
        raise DataError(
            f"{run.path}: its scores are of version {scores.version} of protocol {protocol.name}, which is "
            f"now {protocol.version}, and versions are not compared; {again}"
        )
    if threshold is not None and threshold not in scores.at and scores.cut is None:
        raise DataError(f"{run.path}: no figures at the threshold {threshold!r}, only {', '.join(scores.at)}")
    return dict(scores.at_kind(threshold))


def published_rows(results: Sequence[PublishedResult], backbones: set[str]) -> list[ComparedRow]:
    """The published rows of these backbones, or all where none is named, one backbone after the other.

    Rows without a backbone stay, at the end.
    """
    order = list(dict.fromkeys(r.backbone for r in results if r.backbone))
    several = len({r.data for r in results}) > 1
    rows = [
        ComparedRow(
            method=r.method,
            backbone=r.backbone or "-",
            source=_source_words(r, several),
            data=_data_words(r.data, TEST_IMAGES.get(r.data)),
            protocol="the authors'",
            figures=r.figures,
            published=True,
            chosen=r.chosen,
            note=r.note,
        )
        for r in results
        if not backbones or not r.backbone or r.backbone in backbones
    ]
    return sorted(rows, key=lambda row: order.index(row.backbone) if row.backbone in order else len(order))


def _refuse_unknown(backbones: Sequence[str], published: set[str]) -> None:
    for name in backbones:
        if name not in published:
            known = ", ".join(sorted(b for b in published if b))
            raise ConfigError(f"nothing published for the backbone {name!r}, only for {known}")


def mark_rows(rows: Sequence[ComparedRow], reference: ComparedRow | None) -> list[ComparedRow]:
    """The rows with their p-values against the reference, and the best of each figure and backbone marked."""
    marked = []
    for row in rows:
        p: dict[str, float | None] = {}
        if reference is not None and row is not reference and row.competes_with(reference):
            p = {
                key: p_value(reference.figures[key], row.figures[key])
                for key in row.figures
                if row.testable(key) and reference.testable(key)
            }
        rivals = [r for r in rows if r.competes_with(row)]
        best = frozenset(key for key in row.figures if _is_best(row, rivals, key))
        marked.append(replace(row, p=p, best=best))
    return marked


def _is_best(row: ComparedRow, rivals: Sequence[ComparedRow], key: str) -> bool:
    sign = 1 if comparable_metrics()[key].higher_is_better else -1
    own = sign * row.figures[key].mean
    return all(own >= sign * r.figures[key].mean for r in rivals if key in r.figures)


def caption(rows: Sequence[ComparedRow], reference: ComparedRow | None, left_out: int = 0) -> str:
    """What a reader of the table must know."""
    words = [f"protocol {reference.protocol}, in percent" if reference else "published results, in percent"]
    words.append("bold: best of its backbone")
    if reference and any(p is not None for row in rows for p in row.p.values()):
        words.append(f"*: p < {ALPHA} against {reference.method} ({reference.backbone})")
    if reference and any(row.published for row in rows):
        words.append("published figures: by their authors' own protocols")
        others = dict.fromkeys(r.data for r in rows if r.published and r.data != reference.data)
        if others:
            words.append(f"and on {', '.join(others)}, not on {reference.data}, so they do not compete")
    for what, mark in CHOSEN_MARKS.items():
        if any(what in row.chosen for row in rows):
            words.append(f"{mark}: the {what} was chosen on the test images")
    words += [f"{row.method} ({row.backbone}), {row.source}: {row.note}" for row in rows if row.note]
    if left_out:
        words.append(f"{left_out} published rows of other backbones are left out")
    return "; ".join(words)


def _source_words(result: PublishedResult, several: bool) -> str:
    """Where a published row comes from. several: whether the table is of several data sets."""
    source = f"{result.source}, {result.data}" if several else result.source
    return source if result.year is None else f"{source} ({result.year})"


def _data_words(name: str, images: int | None) -> str:
    return name if images is None else f"{name} with {images:,} test images"
