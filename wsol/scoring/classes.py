"""Scores of a protocol that measures classes alone: of plain classifiers, which make no maps."""

from __future__ import annotations

import numpy as np

from wsol.localization.predictions import Predictions
from wsol.scoring.bootstrap import intervals
from wsol.scoring.judge import TOP5
from wsol.scoring.means import groups_of, percent_over
from wsol.scoring.protocols import Protocol
from wsol.scoring.scores import ClassScores, Scores


def score_classes(source: Predictions, protocol: Protocol, seed: int = 0) -> Scores:
    """Top-1 and top-5 classification with 95 % bootstrap intervals, also of each class.

    An image that could not be read is a miss. Every field of `Scores` that is about boxes stays empty.
    """
    assert source.ranks is not None, "a classifier knows its classes"
    labels = np.asarray(source.labels)
    hits = {"top1_cls": source.ranks < 1, "top5_cls": source.ranks < TOP5}
    table = np.stack(list(hits.values()), axis=1)
    low, high = 100 * intervals(table, seed, groups=groups_of(labels, protocol.mean))
    means = percent_over(table, labels, protocol.mean).tolist()
    per_class = [
        ClassScores(name, int(own.sum()), {"top1_cls": float(100 * hits["top1_cls"][own].mean())})
        for name, own in ((name, labels == label) for label, name in enumerate(source.classes))
        if own.any()
    ]
    return Scores(
        protocol=protocol.name,
        version=protocol.version,
        num_images=len(source),
        view=protocol.view,
        classes_by=protocol.classes_by,
        mean=protocol.mean,
        figures=dict(zip(hits, means, strict=True)),
        intervals={k: (float(a), float(b)) for k, a, b in zip(hits, low, high, strict=True)},
        per_class=tuple(per_class),
    )
