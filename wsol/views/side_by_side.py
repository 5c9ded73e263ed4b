"""Evaluated runs as pictures and pages need them: names to show, scores, predictions, and judged images.

The outcome of an image comes from `wsol.scoring.judged.Judged` alone; no view compares an IoU with a level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wsol.errors import DataError
from wsol.localization.cutter import MapCutter
from wsol.localization.maps import FloatMap
from wsol.localization.predictions import OtherClassMaps, Predictions
from wsol.run import Run
from wsol.scoring.judged import Judged
from wsol.scoring.protocols import Protocol
from wsol.scoring.scores import Scores
from wsol.scoring.sweep import FoundBoxes

TRUE, TOP = 0, 1  # which map of an image: that of the true class, or that of the best class


@dataclass(frozen=True)
class Measured:
    """A run as one protocol measured it. name: what pictures and pages call it."""

    name: str
    run: Run
    protocol: Protocol
    scores: Scores
    predictions: Predictions

    def judge(self, thresholds: ArrayLike) -> tuple[Judged, Judged]:
        """Every image at ascending thresholds, by the map of its true class and by that of its best class.

        Where the best class is the true one the two maps are the same, so their boxes are found once.
        """
        true = Judged.at(self.predictions, self.protocol, thresholds)
        if self.predictions.ranks is None:  # one map, whatever the class
            return true, true
        others = OtherClassMaps(*(part.folder for part in self.predictions.parts))
        other = Judged.at(others, self.protocol, thresholds)
        right = (self.predictions.ranks == 0)[:, None]
        found = FoundBoxes(
            true.found.thresholds,
            boxes=np.where(right[..., None], true.found.boxes, other.found.boxes),
            empty=np.where(right, true.found.empty, other.found.empty),
            single=np.where(right, true.found.single, other.found.single),
            best=np.where(right, true.found.best, other.found.best),
        )
        return true, Judged(self.predictions, self.protocol, found)

    def boxes_in_pixels(self, judged: Judged, row: int) -> NDArray[np.float64]:
        """(S, 4) the single box of an image at each threshold, in pixels of the original."""
        predictions = self.predictions
        return self.protocol.extraction.all_to_original(
            predictions.view, judged.found.boxes[row], predictions.size(row)
        )

    def heat(self, row: int, which: int) -> FloatMap:
        """(h, w) in [0, 1]: the map that is cut, at the resolution of the raw map. which: TRUE or TOP."""
        predictions = self.predictions
        raw = predictions.maps[row, predictions.best_map if which == TOP else 0]
        cutter = MapCutter(raw, predictions.size(row), predictions.view, cut=predictions.cut)
        return cutter.score_map(self.protocol.extraction, (raw.shape[1], raw.shape[0]))

    def image_paths(self, rows: Sequence[int]) -> list[Path]:
        """The image files of these rows. DataError where none of them exists."""
        every = self.run.image_paths(self.predictions)
        paths = [every[row] for row in rows]
        if paths and not any(path.is_file() for path in paths):
            raise DataError(
                f"{paths[0]}: no such image file, and none of the others exists; if the data set was "
                "moved, say where it lies now (--data)"
            )
        return paths


def measure(runs: Sequence[Run], protocol: Protocol) -> list[Measured]:
    """Runs side by side: measured by one protocol on the same images.

    Each is called by the name of its folder, or by its path where two folders have one name. Raises DataError
    or RunFolderError where a run was not measured by the protocol, where its scores and predictions do not
    belong together, or where the images of two runs differ.
    """
    measured = [
        Measured(name, run, protocol, *run.evaluated(protocol))
        for name, run in zip(run_names(runs), runs, strict=True)
    ]
    first = measured[0]
    for other in measured[1:]:
        if other.predictions.names != first.predictions.names:
            raise DataError(
                f"{other.run.path} and {first.run.path} were measured on different images: not comparable"
            )
    return measured


def run_names(runs: Sequence[Run]) -> list[str]:
    """The runs by their folder names, or by their paths where these are shared."""
    names = [run.name for run in runs]
    return [name if names.count(name) == 1 else str(run.path) for name, run in zip(names, runs, strict=True)]
