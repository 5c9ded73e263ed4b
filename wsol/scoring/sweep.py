"""All images at all thresholds: how many hits each threshold makes, then the boxes at the few chosen ones.

There are two passes, so that a table of images by thresholds is never held in memory:
`count_hits` adds up integers per threshold, from which thresholds are chosen *for the data set*; `find_boxes`
then visits every image at those few thresholds. Both work on blocks of rows, in this process or in several,
with equal results: integers add up in any order, and rows keep theirs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wsol.data.transforms import View
from wsol.localization.maps import FloatMap
from wsol.scoring import protocols as named
from wsol.scoring.blocks import over_rows
from wsol.scoring.image import ImageScorer
from wsol.scoring.judge import TOP5, Judge
from wsol.scoring.pxap import PixelCounts


class MapSource(Protocol):
    """Raw maps with what is known of their images: `Predictions`, or maps that another program made.

    `same_map` says that all rows have one raw map, so that its boxes need to be found only once. `cut` is
    where the head that made the maps cuts them itself, None where thresholds do. `ranks` are None where no
    classes were predicted.
    """

    same_map: bool

    @property
    def cut(self) -> float | None: ...

    @property
    def labels(self) -> NDArray[np.integer]: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...
    @property
    def view(self) -> View: ...
    @property
    def ranks(self) -> NDArray[np.int64] | None: ...
    def raw_map(self, row: int) -> FloatMap: ...
    def truths(self, row: int) -> NDArray[np.float64]: ...
    def size(self, row: int) -> tuple[int, int]: ...
    def segmentation_path(self, row: int) -> Path | None: ...
    def unreadable(self, row: int) -> bool: ...


@dataclass(frozen=True)
class Hits:
    """How many of `num` images are hit at each of the T thresholds of a protocol.

    counts: (7, T), its rows by name below. pixels: scores on and off the object, where there are
    segmentations.
    """

    num: int
    counts: NDArray[np.int64]
    pixels: PixelCounts | None = None

    @property
    def known(self) -> NDArray[np.int64]:
        """GT-known localization by the protocol's own box and rule."""
        return self.counts[0]

    @property
    def top1(self) -> NDArray[np.int64]:
        return self.counts[1]

    @property
    def top5(self) -> NDArray[np.int64]:
        return self.counts[2]

    @property
    def single(self) -> NDArray[np.int64]:
        """The single box at IoU 0.5, for MaxBoxAcc."""
        return self.counts[3]

    @property
    def contours(self) -> NDArray[np.int64]:
        """(3, T) the best contour at IoU 0.3, 0.5 and 0.7, for MaxBoxAccV2."""
        return self.counts[4:]

    def __add__(self, other: Hits) -> Hits:
        pixels = [p for p in (self.pixels, other.pixels) if p is not None]
        total = sum(pixels[1:], start=pixels[0]) if pixels else None
        return Hits(self.num + other.num, self.counts + other.counts, total)


@dataclass(frozen=True)
class FoundBoxes:
    """What a protocol finds in N images at S chosen thresholds.

    boxes: (N, S, 4) single boxes in the protocol's frame. empty: (N, S) no foreground. single, best: (N, S)
    the IoU of the single box and of the best contour; 0 where an image could not be read.
    """

    thresholds: NDArray[np.float64]
    boxes: NDArray[np.int64]
    empty: NDArray[np.bool_]
    single: NDArray[np.float64]
    best: NDArray[np.float64]

    def column(self, threshold: float) -> int:
        return int(np.flatnonzero(self.thresholds == threshold)[0])


def count_hits(source: MapSource, protocols: Sequence[named.Protocol], workers: int = 1) -> dict[str, Hits]:
    """The hits at every threshold of each protocol's grid, by the protocol's name."""
    total: dict[str, Hits] = {}
    for part in over_rows(partial(_count_block, source, tuple(protocols)), len(source), workers):
        total = {name: total[name] + hits if name in total else hits for name, hits in part.items()}
    return total


def find_boxes(
    source: MapSource,
    wanted: Mapping[str, NDArray[np.float64]],
    protocols: Sequence[named.Protocol],
    workers: int = 1,
) -> dict[str, FoundBoxes]:
    """Boxes and overlaps of every image at the wanted thresholds of each protocol, ascending."""
    task = partial(_find_block, source, tuple(protocols), dict(wanted))
    parts = list(over_rows(task, len(source), workers))
    found = {}
    for protocol in protocols:
        columns = [np.concatenate(arrays) for arrays in zip(*(p[protocol.name] for p in parts), strict=True)]
        found[protocol.name] = FoundBoxes(wanted[protocol.name], *columns)
    return found


def _scorers(source: MapSource, rows: range) -> Iterator[tuple[int, ImageScorer]]:
    """(position in the block, scorer) of the rows whose image could be read."""
    kept: dict[Hashable, Any] | None = {} if source.same_map else None
    for i, row in enumerate(rows):
        if not source.unreadable(row):
            raw, truths = source.raw_map(row), source.truths(row)
            yield i, ImageScorer(raw, truths, source.size(row), source.view, kept, source.cut)


def _count_block(source: MapSource, protocols: tuple[named.Protocol, ...], rows: range) -> dict[str, Hits]:
    ranks = source.ranks
    # Those that need areas come first: the others can use their results.
    ordered = sorted(protocols, key=lambda p: p.extraction.single_box == "largest component")
    totals = {
        p.name: Hits(len(rows), np.zeros((7, len(p.extraction.thresholds)), dtype=np.int64))
        for p in protocols
    }
    for i, scorer in _scorers(source, rows):
        row = rows[i]
        segmentation_path = source.segmentation_path(row)
        rank = TOP5 if ranks is None else int(ranks[row])
        for p in ordered:
            judge, found = Judge(p), scorer.find(p, p.extraction.thresholds)
            rows_of_hits = (
                judge.known(found),
                judge.top(found, rank, 1),
                judge.top(found, rank, TOP5),
                judge.single(found),
                *judge.contours(found),
            )
            pixels = None if segmentation_path is None else scorer.pixels(p, segmentation_path)
            totals[p.name] += Hits(0, np.stack(rows_of_hits), pixels)
    return totals


def _find_block(
    source: MapSource,
    protocols: tuple[named.Protocol, ...],
    wanted: dict[str, NDArray[np.float64]],
    rows: range,
) -> dict[str, tuple[NDArray[Any], ...]]:
    result: dict[str, tuple[NDArray[Any], ...]] = {}
    for protocol in protocols:
        n, s = len(rows), len(wanted[protocol.name])
        result[protocol.name] = (
            np.zeros((n, s, 4), dtype=np.int64),
            np.ones((n, s), dtype=bool),
            np.zeros((n, s)),
            np.zeros((n, s)),
        )
    for i, scorer in _scorers(source, rows):
        for protocol in protocols:
            for column, value in zip(
                result[protocol.name], scorer.find(protocol, wanted[protocol.name]), strict=True
            ):
                column[i] = value
    return result
