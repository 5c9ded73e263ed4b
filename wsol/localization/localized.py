"""What was found in a photo: records that box files, overlays and the Python interface share."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from wsol.class_names import display_name
from wsol.drawing.overlay import MAX_SIDE, Marked, draw_overlay
from wsol.records import Box


@dataclass(frozen=True)
class Finding:
    """One class and where it is: label, name, probability, and the box in pixels of the original image.

    `empty` says that the map had no foreground, so the box is the one that the protocol gives in that case.
    """

    label: int
    name: str
    score: float
    box: Box
    empty: bool = False


@dataclass(frozen=True)
class ClassAtThresholds:
    """One class of a photo at many thresholds.

    ranking: the best classes, each with its probability. boxes: for each threshold the box in pixels of the
    photo, and whether it stands for no foreground. heat: (S, S) in [0, 1], over the part `region` of it.
    """

    label: int
    score: float
    ranking: Sequence[tuple[int, float]]
    boxes: Sequence[tuple[Box, bool]]
    heat: NDArray[np.floating] = field(repr=False)
    region: Box = field(repr=False)


@dataclass(frozen=True)
class Localization:
    """The classes asked for in one photo, best first, with the heat of the first of them.

    heat: (h, w) in [0, 1], over the part `region` of the image: the map that was cut. In a notebook it shows
    itself as a picture.
    """

    image: NDArray[np.uint8] = field(repr=False)
    found: Sequence[Finding]
    heat: NDArray[np.floating] = field(repr=False)
    region: Box = field(repr=False)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the image."""
        return self.image.shape[1], self.image.shape[0]

    @property
    def best(self) -> Finding:
        return self.found[0]

    @property
    def box(self) -> Box:
        """The box of the best class."""
        return self.best.box

    @property
    def label(self) -> int:
        """The label of the best class."""
        return self.best.label

    @property
    def name(self) -> str:
        """The name of the best class."""
        return self.best.name

    @property
    def score(self) -> float:
        """The probability of the best class."""
        return self.best.score

    def overlay(self, largest: int = MAX_SIDE) -> Image.Image:
        """The photo with the heat, the box of the best class, and what the other classes score."""
        best = self.best
        text = f"{display_name(best.name)} {best.score:.2f}" + (" · no foreground" if best.empty else "")
        return draw_overlay(
            self.image,
            self.heat,
            predicted=[Marked(best.box, text)],
            notes=[
                f"{display_name(one.name)} {one.score:.2f}" for one in self.found[:0:-1] if one.score >= 0.01
            ],
            largest=largest,
            heat_region=self.region,
        )

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.overlay().save(file, "PNG")
        return file.getvalue()
