"""Which classes are taken for each other, and what that costs.

An image of class a that is named b is missed by top-1 localization, whatever its box. Where the box of the
true class's map passes, the name alone made it a miss: with the right name it would be a hit. These images
are what a confusion *costs*, so that over all images

    box passes = top-1 hits + cost of all confusions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wsol.scoring.judged import Judged


@dataclass(frozen=True)
class Misnamed:
    """The images of one run that got a wrong name, at one threshold.

    rows, true, named, passed: (M,) row of the image, its label, the label that it got, and whether its box
    passes.
    points: (M,) the percentage points that one image is worth in the protocol's mean.
    """

    rows: NDArray[np.int64]
    true: NDArray[np.int64]
    named: NDArray[np.int64]
    passed: NDArray[np.bool_]
    points: NDArray[np.float64]

    @classmethod
    def of(cls, judged: Judged, predicted: NDArray[np.integer], column: int) -> Misnamed:
        """judged: by the map of the true class. predicted: (N,) labels, -1 where there is none."""
        labels = np.asarray(judged.source.labels)
        rows = np.flatnonzero((predicted >= 0) & (predicted != labels))
        return cls(
            rows,
            labels[rows].astype(np.int64),
            np.asarray(predicted)[rows].astype(np.int64),
            judged.passed[rows, column],
            worth(judged)[rows],
        )

    def cost(self) -> float:
        """All points of top-1 localization that wrong names cost."""
        return float(self.points[self.passed].sum())

    def between(self, true: int, named: int) -> NDArray[np.bool_]:
        """(M,) which are images of `true` that were named `named`."""
        return (self.true == true) & (self.named == named)


@dataclass(frozen=True)
class Confusion:
    """Images of `true` that were named `named`, by run: how many, and in how many of them the box passes."""

    true: int
    named: int
    images: tuple[int, ...]
    passed: tuple[int, ...]


@dataclass(frozen=True)
class ClassPair:
    """Two classes that are taken for each other. points: by run, what both directions cost together."""

    first: Confusion
    second: Confusion
    points: tuple[float, ...]


def confusions(runs: Sequence[Misnamed]) -> list[Confusion]:
    """Every confusion that occurs in any of the runs, the most frequent first."""
    keys = {key for run in runs for key in zip(run.true.tolist(), run.named.tolist(), strict=True)}
    found = [confusion(runs, *key) for key in keys]
    return sorted(found, key=lambda c: (-sum(c.images), -sum(c.passed), c.true, c.named))


def confusion(runs: Sequence[Misnamed], true: int, named: int) -> Confusion:
    chosen = [run.between(true, named) for run in runs]
    return Confusion(
        true,
        named,
        tuple(int(own.sum()) for own in chosen),
        tuple(int(run.passed[own].sum()) for run, own in zip(runs, chosen, strict=True)),
    )


def costly_pairs(runs: Sequence[Misnamed]) -> list[ClassPair]:
    """Pairs of classes that cost something, the dearest over all runs first."""
    pairs = {
        (min(a, b), max(a, b))
        for run in runs
        for a, b in zip(run.true[run.passed].tolist(), run.named[run.passed].tolist(), strict=True)
    }
    found = [_pair(runs, *pair) for pair in pairs]
    return sorted(found, key=lambda p: (-sum(p.points), p.first.true, p.first.named))


def _pair(runs: Sequence[Misnamed], a: int, b: int) -> ClassPair:
    points = tuple(
        float(run.points[(run.between(a, b) | run.between(b, a)) & run.passed].sum()) for run in runs
    )
    both = confusion(runs, a, b), confusion(runs, b, a)
    first, second = sorted(both, key=lambda c: (-sum(c.passed), -sum(c.images), c.true))
    return ClassPair(first, second, points)


def worth(judged: Judged) -> NDArray[np.float64]:
    """(N,) percentage points of one image in the protocol's mean: 100 / N over images; over classes an image
    of a class with n images, one of C such classes, is worth 100 / (n C)."""
    labels = np.asarray(judged.source.labels)
    if judged.protocol.mean == "images":
        return np.full(len(labels), 100 / max(len(labels), 1))
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    shares: NDArray[np.float64] = 100 / (counts[place] * len(counts))
    return shares
