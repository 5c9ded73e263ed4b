"""Every image of a source, judged by one protocol at a few thresholds: boxes, hits, and what went wrong.

Scores, the report and pictures read this one record, so they say the same of every image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wsol.scoring.blocks import choose_workers
from wsol.scoring.error_kinds import OUTCOMES, UNREADABLE
from wsol.scoring.judge import HIT, Judge
from wsol.scoring.means import percent_over
from wsol.scoring.protocols import Protocol
from wsol.scoring.sweep import FoundBoxes, MapSource, find_boxes

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Judged:
    """N images at S thresholds, by the map of the true class of each.

    `ranks` of the source are None where no classes were predicted; then there are no top-k figures.
    """

    source: MapSource
    protocol: Protocol
    found: FoundBoxes

    @classmethod
    def at(
        cls, source: MapSource, protocol: Protocol, thresholds: ArrayLike, workers: int | None = None
    ) -> Judged:
        """Judge every image at ascending thresholds."""
        values = np.asarray(thresholds, dtype=np.float64)
        workers = workers or choose_workers(len(source))
        found = find_boxes(source, {protocol.name: values}, [protocol], workers)
        return cls(source, protocol, found[protocol.name])

    @cached_property
    def judge(self) -> Judge:
        return Judge(self.protocol)

    @cached_property
    def overlap(self) -> NDArray[np.float64]:
        """(N, S) the IoU that the protocol counts."""
        return self.judge.counted(self.found)

    def known(self, level: float = HIT) -> Bools:
        """(N, S) GT-known localization, at IoU 0.5 or another level."""
        return self.judge.known(self.found, level)

    def top(self, k: int) -> Bools:
        """(N, S) top-k localization."""
        assert self.source.ranks is not None, "no classes were predicted"
        return self.judge.top(self.found, self.source.ranks[:, None], k)

    def percent(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The figure of what each image counts (N, ...), by the protocol's mean over images or classes."""
        return percent_over(values, np.asarray(self.source.labels), self.protocol.mean)

    @cached_property
    def passed(self) -> Bools:
        """(N, S) whether the box passes, which makes a hit where the class is right."""
        return (
            self.judge.known(self.found) if self.source.ranks is None else self.judge.box_passes(self.found)
        )

    @property
    def hits(self) -> Bools:
        """(N, S) top-1 localization, or GT-known localization where no classes were predicted."""
        return self.known() if self.source.ranks is None else self.top(1)

    def kind(self, row: int, column: int) -> str:
        """The outcome of an image at one threshold: one of `OUTCOMES`."""
        return OUTCOMES[int(self.kinds(row, [column])[0])]

    def kinds(self, row: int, columns: Sequence[int] | None = None) -> NDArray[np.uint8]:
        """The outcome of an image at each threshold, or at some of them, as indices into `OUTCOMES`."""
        picked = slice(None) if columns is None else list(columns)
        boxes, passed = self.found.boxes[row, picked], self.passed[row, picked]
        source, ranks = self.source, self.source.ranks
        if source.unreadable(row):
            return np.full(len(boxes), OUTCOMES.index(UNREADABLE), np.uint8)
        right = ranks is None or bool(ranks[row] == 0)
        truths = self.judge.truths(source.view, source.truths(row), source.size(row))
        distinct, back = np.unique(np.column_stack([boxes, passed]), axis=0, return_inverse=True)
        kinds = [
            OUTCOMES.index(self.judge.error_kind(case[:4], truths, right, bool(case[4]))) for case in distinct
        ]
        return np.array(kinds, dtype=np.uint8)[back.reshape(-1)]
