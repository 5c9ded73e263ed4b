"""Pictures of evaluated images, one for each run: what `wsol visualize` draws."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from wsol.class_names import OBJECT, display_names
from wsol.data.image import read_image
from wsol.drawing.grid import draw_grid
from wsol.drawing.overlay import MAX_SIDE, Marked, draw_overlay
from wsol.errors import ConfigError, DataError
from wsol.records import Box
from wsol.run import Run
from wsol.scoring.judged import Judged
from wsol.scoring.protocols import Protocol
from wsol.views.pick import pick_rows
from wsol.views.side_by_side import TOP, Measured, measure

TILE = 460  # longest side of a picture in the grid


@dataclass(frozen=True)
class PickedSide:
    """One image as one run sees it, by the map of its best class.

    threshold: where the map was cut. outcome: `hit`, or why the image is missed, by
    `Judged`. overlap: the IoU that the protocol counts. predicted: the label of the best class, score: its
    probability. tile: a smaller picture for the grid.
    """

    run: str
    threshold: float
    outcome: str
    overlap: float
    predicted: int
    score: float
    picture: Image.Image
    tile: Image.Image


@dataclass(frozen=True)
class PickedImage:
    """One image: its name, the name of its class as people read it, and how each run sees it."""

    name: str
    truth: str
    sides: Sequence[PickedSide]

    @property
    def pictures(self) -> list[Image.Image]:
        return [side.picture for side in self.sides]

    @property
    def tiles(self) -> list[Image.Image]:
        return [side.tile for side in self.sides]

    @property
    def thresholds(self) -> list[float]:
        return [side.threshold for side in self.sides]

    def _repr_png_(self) -> bytes:
        sheet = self.pictures[0]
        if len(self.sides) > 1:
            sheet = draw_grid([self.pictures], [side.run for side in self.sides])
        file = io.BytesIO()
        sheet.save(file, "PNG")
        return file.getvalue()


def draw_picked(
    runs: Sequence[Run], protocol: Protocol, how: str = "worst", num: int = 24, threshold: float | None = None
) -> Iterator[PickedImage]:
    """The picked images, as the first run ranks them, with what every run found on its best class's map.

    how, num: which images, and at most how many; see `wsol.views.pick`. threshold: for all runs; None for
    each run's own, which was chosen on held-out images where there were some, else the protocol's fixed one.
    An image that cannot be read any more is left out.
    """
    if num < 1:
        raise ConfigError(f"num {num}: at least 1 picture is needed")
    if threshold is not None and not 0 <= threshold < 1:
        raise ConfigError(f"threshold {threshold} is outside 0 to 1")
    measured = measure(runs, protocol)
    cuts = [m.scores.default_threshold() if threshold is None else threshold for m in measured]
    judged = [m.judge([cut])[1] for m, cut in zip(measured, cuts, strict=True)]
    predictions = measured[0].predictions
    rows = pick_rows(
        how,
        num,
        judged[0].overlap[:, 0],
        predictions.probabilities.max(axis=1),
        predictions.predicted,
        predictions.labels,
        predictions.classes,
    )
    return _draw_rows(measured, judged, rows)


def _draw_rows(
    measured: Sequence[Measured], judged: Sequence[Judged], rows: Sequence[int]
) -> Iterator[PickedImage]:
    predictions = measured[0].predictions
    shown = display_names(predictions.classes)
    for row, path in zip(rows, measured[0].image_paths(rows), strict=True):
        try:
            image = read_image(path)
        except DataError:
            continue  # it was readable when the run was evaluated; the caller counts what comes
        sides = [_draw_side(m, j, row, image, shown) for m, j in zip(measured, judged, strict=True)]
        yield PickedImage(predictions.names[row], shown[int(predictions.labels[row])], sides)


def _draw_side(
    measured: Measured, judged: Judged, row: int, image: NDArray[np.uint8], shown: Sequence[str]
) -> PickedSide:
    predictions = measured.predictions
    label, predicted = int(predictions.labels[row]), int(predictions.predicted[row])
    score, overlap = float(predictions.probabilities[row].max()), float(judged.overlap[row, 0])
    outcome = judged.kind(row, 0)
    said = f"{shown[predicted]} {score:.2f}" if predictions.header.knows_classes else OBJECT
    words = [said if predicted >= 0 else "unread"]
    truths = [Marked(Box(*box)) for box in predictions.truths(row).tolist()]
    if truths:
        words.append(f"IoU {overlap:.2f}")
        if predicted != label:
            truths[0] = Marked(truths[0].box, f"true: {shown[label]}")
    box = Box(*measured.boxes_in_pixels(judged, row)[0])
    picture, tile = (
        draw_overlay(
            image,
            measured.heat(row, TOP),
            predicted=[Marked(box, " · ".join([*words, outcome]))],
            truth=truths,
            largest=largest,
            heat_region=predictions.view.region((image.shape[1], image.shape[0])),
        )
        for largest in (MAX_SIDE, TILE)
    )
    threshold = float(judged.found.thresholds[0])
    return PickedSide(measured.name, threshold, outcome, overlap, predicted, score, picture, tile)
