"""Pictures of evaluated images, one for each run: what `wsol visualize` draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from wsol.class_names import display_names
from wsol.data.image import read_image
from wsol.drawing.overlay import MAX_SIDE, Marked, draw_overlay
from wsol.errors import DataError
from wsol.localization.maps import prepare
from wsol.records import Box
from wsol.scoring.sweep import FoundBoxes
from wsol.views.pick import pick_rows
from wsol.views.results import Results

TILE = 460  # longest side of a picture in the grid


@dataclass(frozen=True)
class Drawn:
    """One image: its name, its class, and for each run a picture and a smaller one for the grid."""

    name: str
    truth: str
    pictures: Sequence[Image.Image]
    tiles: Sequence[Image.Image]


def draw_picked(
    results: Sequence[Results], how: str, num: int, threshold: float | None = None
) -> Iterator[Drawn]:
    """The picked images, as the first run ranks them, with what every run found on its best class's map.

    threshold: for all runs; None for each run's own.
    """
    cuts = [r.threshold if threshold is None else threshold for r in results]
    found = [r.find(np.array([cut]))[1] for r, cut in zip(results, cuts, strict=True)]
    first = results[0]
    rows = pick_rows(
        how,
        num,
        found[0].single[:, 0],
        first.probabilities.max(axis=1),
        first.predicted,
        first.predictions.labels,
        first.predictions.classes,
    )
    shown = display_names(first.predictions.classes)
    for row in rows:
        name = first.predictions.names[row]
        try:
            image = read_image(first.paths[name])
        except DataError:
            continue  # it was readable when the run was evaluated; the caller counts what comes
        truth = shown[int(first.predictions.labels[row])]
        pictures, tiles = (
            [_draw(r, boxes, row, image, shown, side) for r, boxes in zip(results, found, strict=True)]
            for side in (MAX_SIDE, TILE)
        )
        yield Drawn(name, truth, pictures, tiles)


def _draw(
    results: Results, found: FoundBoxes, row: int, image: np.ndarray, shown: Sequence[str], largest: int
) -> Image.Image:
    predictions = results.predictions
    label, predicted = int(predictions.labels[row]), int(results.predicted[row])
    box = Box(*results.in_pixels(row, found.boxes[row])[0])
    raw = np.asarray(predictions.maps[row, 1], dtype=np.float64)
    heat = prepare(raw, results.protocol.recipe, (raw.shape[1], raw.shape[0]))
    named = f"{shown[predicted]} {results.probabilities[row].max():.2f}" if predicted >= 0 else "unread"
    overlap = f" · IoU {found.single[row, 0]:.2f}" if len(predictions.truths(row)) else ""
    truths = [Marked(Box(*t)) for t in predictions.truths(row).tolist()]
    if truths and predicted != label:
        truths[0] = Marked(truths[0].box, f"true: {shown[label]}")
    return draw_overlay(
        image,
        heat,
        predicted=[Marked(box, named + overlap)],
        truth=truths,
        largest=largest,
        heat_region=predictions.view.region((image.shape[1], image.shape[0])),
    )
