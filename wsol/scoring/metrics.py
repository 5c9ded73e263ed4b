"""From hits to figures: what a protocol says of a set of predictions, in percent, every figure labelled.

A threshold is one for the whole data set, never one per image, and comes in three kinds:

- ``fixed``: the protocol's own, which looks at no box;
- ``held_out``: the best for GT-known localization on held-out *training* images, whose boxes it uses;
- ``oracle``: the best for GT-known localization on the test images themselves.

At each of them: `top1_loc`, `top5_loc`, `gt_known_loc`, and `box_acc` and `box_acc_v2`, the accuracy of the
single box at IoU 0.5 and that of the best contour, averaged over IoU 0.3, 0.5 and 0.7. Then `max_box_acc` and
`max_box_acc_v2`, the same with the threshold (for V2 each IoU's own) that is best on the test images. A
protocol's headline figures are those at its own kind of threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wsol.errors import DataError
from wsol.scoring.baseline import CentreMaps
from wsol.scoring.bootstrap import intervals
from wsol.scoring.error_kinds import KINDS, error_kind
from wsol.scoring.frames import truths_in_frame
from wsol.scoring.protocols import HIT, IOU_LEVELS, Protocol
from wsol.scoring.sweep import (
    TOP5,
    FoundBoxes,
    Hits,
    MapSource,
    count_hits,
    find_boxes,
    own_overlap,
    passes,
)

Figures = dict[str, float]


@dataclass(frozen=True)
class HeldOut:
    """A threshold chosen on held-out training images, and how many truth boxes that took."""

    threshold: float
    num_images: int
    num_boxes: int


def choose_threshold(hits: Hits, protocol: Protocol) -> float:
    """The threshold with the most GT-known hits; the middle one where several share the most."""
    return _best_threshold(hits.known, protocol)


def _best_threshold(hits: NDArray[np.int64], protocol: Protocol) -> float:
    best = np.flatnonzero(hits == hits.max())
    return float(protocol.thresholds[best[len(best) // 2]])


def hold_out_thresholds(
    source: MapSource, protocols: Sequence[Protocol], workers: int = 1
) -> dict[str, HeldOut]:
    """The threshold of each protocol that is best on these images, which must not be test images."""
    boxes = sum(len(source.truths(row)) for row in range(len(source)))
    if boxes == 0:
        return {}
    hits = count_hits(source, protocols, workers)
    return {p.name: HeldOut(choose_threshold(hits[p.name], p), len(source), boxes) for p in protocols}


def score(
    source: MapSource,
    protocols: Sequence[Protocol],
    held_out: Mapping[str, HeldOut] | None = None,
    workers: int = 1,
    seed: int = 0,
) -> dict[str, dict[str, Any]]:
    """Every figure of every protocol, by the protocol's name. All protocols must want the source's view."""
    if len(source) == 0:
        raise DataError("no images to score")
    strangers = [p.name for p in protocols if p.view != source.view.kind]
    if strangers:
        raise ValueError(f"{', '.join(strangers)}: not for maps of the view {source.view.kind!r}")
    held_out = held_out or {}
    hits = count_hits(source, protocols, workers)
    picked = {p.name: _pick(p, hits[p.name], held_out.get(p.name)) for p in protocols}
    wanted = {name: np.unique(list(kinds.values())) for name, kinds in picked.items()}
    found = find_boxes(source, wanted, protocols, workers)
    centre = _centre_figures(CentreMaps(source), protocols, workers)
    results = {}
    for p in protocols:
        result = _figures(p, source, hits[p.name], found[p.name], picked[p.name], seed)
        if p.name in held_out:
            result["at"]["held_out"] |= {
                "num_images": held_out[p.name].num_images,
                "num_boxes": held_out[p.name].num_boxes,
            }
        results[p.name] = {**result, "centre_box": centre[p.name]}
    return results


def _pick(protocol: Protocol, hits: Hits, held_out: HeldOut | None) -> dict[str, float]:
    """The thresholds that figures are given at, by what they are for."""
    picked = {"fixed": protocol.fixed, "oracle": choose_threshold(hits, protocol)}
    if held_out is not None:
        picked["held_out"] = held_out.threshold
    picked["max_box_acc"] = _best_threshold(hits.single, protocol)
    if protocol.box == "all contours":  # then the V2 figure is its own, and gets an interval
        for least, row in zip(IOU_LEVELS, hits.contours, strict=True):
            picked[_v2(least)] = _best_threshold(row, protocol)
    return picked


def _v2(least: float) -> str:
    return f"max_box_acc_v2 {least:g}"


def _figures(
    p: Protocol, source: MapSource, hits: Hits, found: FoundBoxes, picked: Mapping[str, float], seed: int
) -> dict[str, Any]:
    ranks = source.ranks
    columns = _hit_columns(p, found, picked, ranks)
    names = list(columns)
    table = np.stack([columns[name] for name in names], axis=1)
    low, high = 100 * intervals(table, seed)
    means = dict(zip(names, (100 * table.sum(axis=0) / len(table)).tolist(), strict=True))
    spans = {name: [float(low[i]), float(high[i])] for i, name in enumerate(names)}

    at: dict[str, dict[str, Any]] = {}
    for kind in ("fixed", "held_out", "oracle"):
        if kind in picked:
            own = {n.partition(" ")[2]: n for n in names if n.startswith(f"{kind} ")}
            at[kind] = {"threshold": picked[kind]} | {short: means[n] for short, n in own.items()}
            at[kind]["intervals"] = {short: spans[n] for short, n in own.items()}
    shown = ("threshold", "top1_loc", "top5_loc", "gt_known_loc")
    headline = {k: v for k, v in at[p.headline].items() if k in shown}
    whole = {"top1_cls", "top5_cls", "max_box_acc"} & set(names)
    spanned = whole | {"max_box_acc_v2"} & set(names)
    result: dict[str, Any] = {
        "protocol": p.name,
        "num_images": len(source),
        "view": p.view,
        "normalize": p.recipe.normalize,
        "threshold_kind": p.headline,
        **headline,
        **{name: means[name] for name in sorted(whole)},
        **_max_box_acc_v2(hits),
        "intervals": {k: v for k, v in at[p.headline]["intervals"].items() if k in shown}
        | {n: spans[n] for n in sorted(spanned)},
        "at": at,
        "errors": _count_kinds(p, source, found, picked[p.headline]),
        "per_class": _per_class(columns, p.headline, source.labels, source.classes),
        "no_foreground": int(found.empty[:, found.column(picked[p.headline])].sum()),
    }
    if hits.pixels is not None:
        result["pxap"] = 100 * hits.pixels.average_precision()
    return result


def _hit_columns(
    p: Protocol, found: FoundBoxes, picked: Mapping[str, float], ranks: NDArray[np.int64] | None
) -> dict[str, NDArray[Any]]:
    """Per image, whether (or for V2, how much of) each figure counts it: everything is a mean of these."""
    columns: dict[str, NDArray[Any]] = {}
    if ranks is not None:
        columns |= {"top1_cls": ranks < 1, "top5_cls": ranks < TOP5}
    for kind in ("fixed", "held_out", "oracle"):
        if kind not in picked:
            continue
        at = found.column(picked[kind])
        own = own_overlap(p, found.single, found.best)[:, at]
        if ranks is not None:
            top = passes(own, HIT, p.strict_top)
            columns |= {f"{kind} top1_loc": top & (ranks < 1), f"{kind} top5_loc": top & (ranks < TOP5)}
        columns[f"{kind} gt_known_loc"] = passes(own, HIT, p.strict_known)
        columns[f"{kind} box_acc"] = passes(found.single[:, at], HIT, p.strict_known)
        levels = [passes(found.best[:, at], least, p.strict_known) for least in IOU_LEVELS]
        columns[f"{kind} box_acc_v2"] = np.mean(levels, axis=0)
    single = found.single[:, found.column(picked["max_box_acc"])]
    columns["max_box_acc"] = passes(single, HIT, p.strict_known)
    if _v2(HIT) in picked:
        best = [found.best[:, found.column(picked[_v2(least)])] for least in IOU_LEVELS]
        hits = [passes(b, least, p.strict_known) for b, least in zip(best, IOU_LEVELS, strict=True)]
        columns["max_box_acc_v2"] = np.mean(hits, axis=0)
    return columns


def _max_box_acc_v2(hits: Hits) -> dict[str, Any]:
    best = (100 * hits.contours.max(axis=1) / hits.num).tolist()
    by_iou = {f"{least:g}": value for least, value in zip(IOU_LEVELS, best, strict=True)}
    return {"max_box_acc_v2": sum(best) / len(best), "max_box_acc_v2_by_iou": by_iou}


def _count_kinds(p: Protocol, source: MapSource, found: FoundBoxes, threshold: float) -> dict[str, int]:
    """How many images fall to each error kind at one threshold; unreadable images are a kind of their own."""
    at = found.column(threshold)
    own = own_overlap(p, found.single, found.best)[:, at]
    ranks = source.ranks
    passed = passes(own, HIT, p.strict_known if ranks is None else p.strict_top)
    counts = dict.fromkeys((*KINDS, "unreadable image"), 0)
    for row in range(len(source)):
        if source.unreadable(row):
            kind = "unreadable image"
        else:
            truths = truths_in_frame(p, source.view, source.truths(row), source.size(row))
            right = ranks is None or bool(ranks[row] == 0)
            kind = error_kind(found.boxes[row, at], truths, right, bool(passed[row]), p.iou)
        counts[kind] += 1
    return counts


def _centre_figures(
    centre: CentreMaps, protocols: Sequence[Protocol], workers: int
) -> dict[str, dict[str, Any]]:
    """The baseline at the protocol's fixed threshold, and at its own best ones."""
    hits = count_hits(centre, protocols, workers)
    figures = {}
    for p in protocols:
        own = hits[p.name]
        fixed = int(np.argmin(np.abs(p.thresholds - p.fixed)))  # every fixed threshold is on its grid
        figures[p.name] = {
            "gt_known_loc_fixed": float(100 * own.known[fixed] / own.num),
            "gt_known_loc_oracle": float(100 * own.known.max() / own.num),
            "max_box_acc": float(100 * own.single.max() / own.num),
            **_max_box_acc_v2(own),
        }
    return figures


def _per_class(
    columns: Mapping[str, NDArray[Any]], kind: str, labels: NDArray[np.integer], classes: Sequence[str]
) -> list[dict[str, Any]]:
    """One row for each class that has images, at the headline threshold."""
    wanted = {"top1_cls": "top1_cls"} | {n: f"{kind} {n}" for n in ("top1_loc", "top5_loc", "gt_known_loc")}
    rows = []
    for label, name in enumerate(classes):
        own = np.asarray(labels) == label
        if own.any():
            shares = {n: float(100 * columns[c][own].mean()) for n, c in wanted.items() if c in columns}
            rows.append({"class": name, "num_images": int(own.sum()), **shares})
    return rows
