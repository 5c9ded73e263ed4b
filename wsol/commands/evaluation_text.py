"""An evaluation as lines for the terminal: what `wsol evaluate` and `wsol score` print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsol.scoring.scores import Evaluation, Scores

LISTED = 5  # names that a fault shows


def evaluation_lines(found: Evaluation, origin: str) -> Iterator[str]:
    """The tables, and what a reader must know about them. origin: the run or the folder of maps."""
    made_by = f" ({found.checkpoint})" if found.checkpoint else ""
    yield (
        f"{origin}{made_by}: {found.num_images:,} {found.split} images of {found.data}; figures in percent "
        "[95 % bootstrap interval]\n"
    )
    localized = [s for s in found.values() if s.localizes]
    by_kind = {_ranking(s): s for s in localized if "top1_cls" in s}
    for ranking, scores in by_kind.items():
        yield f"classification, {ranking}: top-1 {scores['top1_cls']:.2f}, top-5 {scores['top5_cls']:.2f}\n"
    yield f"{found}\n"
    cuts = {s.cut for s in found.values() if s.cut is not None}
    for cut in cuts:
        yield f"the head cuts its raw map itself, at {cut:g}: this stands for every protocol's threshold"
    if localized and not cuts:
        yield "* marks the kind of threshold that a protocol itself reports"
    held = localized[0].at.get("held_out") if localized else None
    if held:
        yield (
            f"held out: thresholds from {held.num_boxes:,} boxes of {held.num_images:,} training images "
            f"({found.held_out_from})"
        )
    if not found.checkpoint:
        cropped = [name for name, s in found.items() if s.view == "crop"]
        if cropped:
            yield f"{', '.join(cropped)}: the maps are read as maps of the centre crop"
    segmented = max(s.num_segmentations for s in found.values())
    if 0 < segmented < found.num_images:
        without = found.num_images - segmented
        yield f"PxAP: of {segmented:,} images; the other {without:,} have no segmentation"
    if localized and found.images_without_boxes:
        yield f"{found.split} images without boxes: {found.images_without_boxes:,}, each of them a miss"
    for kind, names in found.faults.items():
        if names:
            shown = ", ".join(names[:LISTED]) + (", ..." if len(names) > LISTED else "")
            yield f"{kind.replace('_', ' ')}: {len(names)} ({shown}), none of them left out"


def _ranking(scores: Scores) -> str:
    """What the classes were ranked by, in words. Ten crops are the same ones whatever the protocol's view."""
    how = f"test image by {scores.view}" if scores.classes_by == "view" else f"by {scores.classes_by}"
    return how + (", mean over classes" if scores.mean == "classes" else "")
