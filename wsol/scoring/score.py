"""From maps to scores: what each protocol says of a set of images, every figure labelled.

A threshold is one for the whole data set, never one per image. `wsol.scoring.metrics` says what the figures
and the kinds of thresholds are. A protocol's headline figures are those at its own kind of threshold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wsol.errors import DataError
from wsol.scoring.baseline import CentreMaps
from wsol.scoring.bootstrap import intervals
from wsol.scoring.error_kinds import OUTCOMES
from wsol.scoring.judge import IOU_LEVELS
from wsol.scoring.judged import Judged
from wsol.scoring.means import groups_of
from wsol.scoring.metrics import KINDS, Kind, metrics
from wsol.scoring.protocols import Protocol
from wsol.scoring.scores import ClassScores, Scores, ScoresAt
from wsol.scoring.sweep import Hits, MapSource, count_hits, find_boxes

PER_CLASS = ("top1_cls", "top1_loc", "top5_loc", "gt_known_loc")


@dataclass(frozen=True)
class HeldOut:
    """A threshold chosen on held-out training images, and how many truth boxes that took."""

    threshold: float
    num_images: int
    num_boxes: int


def choose_threshold(hits: NDArray[np.floating], protocol: Protocol) -> float:
    """The threshold with the largest share of hits (T,); the middle one where several share the largest."""
    best = np.flatnonzero(hits == hits.max())
    return float(protocol.extraction.thresholds[best[len(best) // 2]])


def hold_out_thresholds(
    source: MapSource, protocols: Sequence[Protocol], workers: int = 1
) -> dict[str, HeldOut]:
    """The threshold of each protocol that is best on these images, which must not be test images."""
    boxes = sum(len(source.truths(row)) for row in range(len(source)))
    if boxes == 0:
        return {}
    hits = count_hits(source, protocols, workers)
    return {p.name: HeldOut(choose_threshold(hits[p.name].known, p), len(source), boxes) for p in protocols}


def score_maps(
    source: MapSource,
    protocols: Sequence[Protocol],
    held_out: Mapping[str, HeldOut] | None = None,
    workers: int = 1,
    seed: int = 0,
) -> dict[str, Scores]:
    """Every figure of every protocol, by the protocol's name.

    All protocols must want the source's view, and classes that were ranked as the source's were.
    """
    if len(source) == 0:
        raise DataError("no images to score")
    unfit = [p.name for p in protocols if p.view != source.view.kind]
    if unfit:
        raise ValueError(f"{', '.join(unfit)}: not for maps of the view {source.view.kind!r}")
    unfit = [p.name for p in protocols if not p.boxes]
    if unfit:
        raise DataError(f"{', '.join(unfit)}: measures classes alone, not maps; take another protocol")
    unfit = [p.name for p in protocols if source.classes_by not in (None, p.classes_by)]
    if unfit:
        raise ValueError(f"{', '.join(unfit)}: not for classes by {source.classes_by!r}")
    held_out = held_out or {}
    centre = _centre_figures(CentreMaps(source), protocols, workers)
    protocols = [p.for_own_cut(source.cut) for p in protocols]
    hits = count_hits(source, protocols, workers)
    picked = {p.name: Picked.of(p, hits[p.name], held_out.get(p.name)) for p in protocols}
    wanted = {name: np.unique(pick.all()) for name, pick in picked.items()}
    found = find_boxes(source, wanted, protocols, workers)
    return {
        p.name: _scores(
            Judged(source, p, found[p.name]),
            hits[p.name],
            picked[p.name],
            held_out.get(p.name),
            centre[p.name],
            seed,
        )
        for p in protocols
    }


@dataclass(frozen=True)
class Picked:
    """The thresholds that figures are given at: by kind, of MaxBoxAcc, and of each IoU level of MaxBoxAccV2.

    `levels` is () where V2 is not the protocol's own figure; then it needs no interval.
    """

    kinds: Mapping[Kind, float]
    single: float
    levels: tuple[float, ...]

    @classmethod
    def of(cls, protocol: Protocol, hits: Hits, held_out: HeldOut | None) -> Picked:
        kinds: dict[Kind, float] = {"fixed": protocol.extraction.fixed}
        if held_out is not None:
            kinds["held_out"] = held_out.threshold
        if len(protocol.extraction.thresholds) > 1:  # else there is nothing to choose from
            kinds["oracle"] = choose_threshold(hits.known, protocol)
        every_contour = protocol.extraction.box == "all contours"
        levels = tuple(choose_threshold(row, protocol) for row in hits.contours) if every_contour else ()
        return cls(kinds, choose_threshold(hits.single, protocol), levels)

    def all(self) -> list[float]:
        return [*self.kinds.values(), self.single, *self.levels]


Column = tuple[Kind | None, str]  # (kind of threshold where the figure needs one, key of the figure)


def _scores(
    judged: Judged,
    hits: Hits,
    picked: Picked,
    held_out: HeldOut | None,
    centre: Mapping[str, float],
    seed: int,
) -> Scores:
    p, source = judged.protocol, judged.source
    columns = _columns(judged, picked)
    table = np.stack(list(columns.values()), axis=1)
    ends = 100 * intervals(table, seed, groups=groups_of(np.asarray(source.labels), p.mean))
    means = dict(zip(columns, judged.percent(table).tolist(), strict=True))
    spans = {c: (float(low), float(high)) for c, low, high in zip(columns, *ends, strict=True)}

    at = {}
    for kind, threshold in picked.kinds.items():
        own = [c for c in columns if c[0] == kind]
        counts = (
            (held_out.num_images, held_out.num_boxes) if held_out and kind == "held_out" else (None, None)
        )
        at[kind] = ScoresAt(threshold, {c[1]: means[c] for c in own}, {c[1]: spans[c] for c in own}, *counts)
    known = metrics()
    own = [c for c in columns if c[0] in (None, p.headline) and known[c[1]].headline]
    by_iou, maximum = _max_box_acc_v2(hits)
    figures = {c[1]: means[c] for c in own} | {"max_box_acc_v2": maximum}
    if hits.pixels is not None:
        figures["pxap"] = 100 * hits.pixels.average_precision()
    return Scores(
        protocol=p.name,
        version=p.version,
        num_images=len(source),
        view=p.view,
        classes_by=p.classes_by,
        mean=p.mean,
        normalize=p.extraction.recipe.normalize,
        threshold_kind=p.headline,
        threshold=picked.kinds[p.headline],
        figures={key: figures[key] for key in known if key in figures},
        intervals={c[1]: spans[c] for c in own},
        by_iou=by_iou,
        at=at,
        errors=_count_kinds(judged, picked.kinds[p.headline]),
        per_class=_per_class(columns, p.headline, source),
        no_foreground=int(judged.found.empty[:, judged.found.column(picked.kinds[p.headline])].sum()),
        centre_box=centre,
        num_segmentations=_count_segmentations(source) if hits.pixels is not None else 0,
        cut=source.cut,
    )


def _columns(judged: Judged, picked: Picked) -> dict[Column, NDArray[Any]]:
    """Per image, whether (or how much) each figure counts it: everything is a mean of these."""
    found, judge = judged.found, judged.judge
    own = [m for m in metrics().values() if m.per_image is not None]
    columns: dict[Column, NDArray[Any] | None] = {}
    for metric in own:
        if not metric.needs_threshold and metric.per_image is not None:
            columns[None, metric.key] = metric.per_image(judged, 0)
    for kind in KINDS:
        for metric in own:
            if kind in picked.kinds and metric.needs_threshold and metric.per_image is not None:
                columns[kind, metric.key] = metric.per_image(judged, found.column(picked.kinds[kind]))
    columns[None, "max_box_acc"] = judge.single(found)[:, found.column(picked.single)]
    if picked.levels:
        each = zip(IOU_LEVELS, picked.levels, strict=True)
        hits = [judge.contour(found, level)[:, found.column(t)] for level, t in each]
        columns[None, "max_box_acc_v2"] = np.mean(hits, axis=0)
    return {name: column for name, column in columns.items() if column is not None}


def _max_box_acc_v2(hits: Hits) -> tuple[dict[str, float], float]:
    """The best accuracy of each IoU level, and their mean."""
    best = hits.contours.max(axis=1).tolist()
    return {f"{level:g}": v for level, v in zip(IOU_LEVELS, best, strict=True)}, sum(best) / len(best)


def _count_kinds(judged: Judged, threshold: float) -> dict[str, int]:
    """How many images fall to each error kind at one threshold."""
    column = judged.found.column(threshold)
    counts = Counter(judged.kind(row, column) for row in range(len(judged.source)))
    return {kind: counts[kind] for kind in OUTCOMES}


def _count_segmentations(source: MapSource) -> int:
    return sum(source.segmentation_path(row) is not None for row in range(len(source)))


def _centre_figures(
    centre: CentreMaps, protocols: Sequence[Protocol], workers: int
) -> dict[str, dict[str, float]]:
    """The baseline at the protocol's fixed threshold, and at its own best ones."""
    hits = count_hits(centre, protocols, workers)
    figures = {}
    for p in protocols:
        own, e = hits[p.name], p.extraction
        fixed = int(np.argmin(np.abs(e.thresholds - e.fixed)))  # every fixed threshold is on its grid
        figures[p.name] = {
            "gt_known_loc_fixed": float(own.known[fixed]),
            "gt_known_loc_oracle": float(own.known.max()),
            "max_box_acc": float(own.single.max()),
            "max_box_acc_v2": _max_box_acc_v2(own)[1],
        }
    return figures


def _per_class(
    columns: Mapping[Column, NDArray[Any]], kind: Kind, source: MapSource
) -> tuple[ClassScores, ...]:
    """One row for each class that has images, at the headline threshold."""
    wanted = {key: columns.get((kind, key), columns.get((None, key))) for key in PER_CLASS}
    rows = []
    for label, name in enumerate(source.classes):
        own = np.asarray(source.labels) == label
        if own.any():
            shares = {key: float(100 * c[own].mean()) for key, c in wanted.items() if c is not None}
            rows.append(ClassScores(name, int(own.sum()), shares))
    return tuple(rows)
