"""All images at all thresholds: how many hits each threshold makes, then the boxes at the few chosen ones.

There are two passes, so that a table of images by thresholds is never held in memory:
`count_hits` adds up integers per threshold, from which thresholds are chosen *for the data set*; `find_boxes`
then visits every image at those few thresholds. Both work on blocks of rows, in this process or in several,
with equal results: integers add up in any order, and rows keep theirs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wsol.data.transforms import View
from wsol.localization.maps import FloatMap
from wsol.localization.predictions import ClassesBy
from wsol.scoring import protocols as named
from wsol.scoring.blocks import over_rows
from wsol.scoring.image import ImageScorer
from wsol.scoring.judge import TOP5, Judge
from wsol.scoring.means import groups_of, percent_of_groups
from wsol.scoring.pxap import PixelCounts


class MapSource(Protocol):
    """Raw maps with what is known of their images: `Predictions`, or maps that another program made.

    `same_map` says that all rows have one raw map, so that its boxes need to be found only once. `cut` is
    where the head that made the maps cuts them itself, None where thresholds do. `ranks` are None where no
    classes were predicted. `classes_by` says what ranked them, None where that is not known.
    """

    same_map: bool

    @property
    def cut(self) -> float | None: ...

    @property
    def classes_by(self) -> ClassesBy | None: ...

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
    """How many images are hit at each of the T thresholds of a protocol, by group of images.

    There is one group for all images, or one for each class where a protocol's mean is over classes.
    sizes: (G,) the images of each group. counts: (G, 7, T), the seven by name below. pixels: scores on and
    off the object, where there are segmentations.
    """

    sizes: NDArray[np.int64]
    counts: NDArray[np.int64]
    pixels: PixelCounts | None = None

    @cached_property
    def percent(self) -> NDArray[np.float64]:
        """(7, T) the mean over all images, or over the classes."""
        return percent_of_groups(self.counts, self.sizes)

    @property
    def known(self) -> NDArray[np.float64]:
        """GT-known localization by the protocol's own box and rule, in percent, as all of these."""
        return self.percent[0]

    @property
    def top1(self) -> NDArray[np.float64]:
        return self.percent[1]

    @property
    def top5(self) -> NDArray[np.float64]:
        return self.percent[2]

    @property
    def single(self) -> NDArray[np.float64]:
        """The single box at IoU 0.5, for MaxBoxAcc."""
        return self.percent[3]

    @property
    def contours(self) -> NDArray[np.float64]:
        """(3, T) the best contour at IoU 0.3, 0.5 and 0.7, for MaxBoxAccV2."""
        return self.percent[4:]

    def __add__(self, other: Hits) -> Hits:
        pixels = [p for p in (self.pixels, other.pixels) if p is not None]
        total = sum(pixels[1:], start=pixels[0]) if pixels else None
        return Hits(self.sizes + other.sizes, self.counts + other.counts, total)


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
    ranks, labels = source.ranks, np.asarray(source.labels)
    # Those that need areas come first: the others can use their results.
    ordered = sorted(protocols, key=lambda p: p.extraction.single_box != "largest contour")
    groups = {p.name: groups_of(labels, p.mean) for p in protocols}
    counts = {
        p.name: np.zeros((groups[p.name].max() + 1, 7, len(p.extraction.thresholds)), dtype=np.int64)
        for p in protocols
    }
    pixels: dict[str, PixelCounts] = {}
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
            counts[p.name][groups[p.name][row]] += np.stack(rows_of_hits)
            if segmentation_path is not None:
                own = scorer.pixels(p, segmentation_path)
                pixels[p.name] = pixels[p.name] + own if p.name in pixels else own
    return {
        name: Hits(
            np.bincount(groups[name][rows.start : rows.stop], minlength=len(own)), own, pixels.get(name)
        )
        for name, own in counts.items()
    }


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
