"""What was found in a photo: records that the writers, the overlays and the Python interface share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from wsol.class_names import display_name
from wsol.drawing.overlay import MAX_SIDE, Marked, draw_overlay
from wsol.records import Box


@dataclass(frozen=True)
class Found:
    """One class and where it is: the probability of the class and the box, in pixels of the original image.

    `empty` says that the map had no foreground, so that the box is the protocol's stand-in for it.
    """

    label: int
    name: str
    score: float
    box: Box
    empty: bool = False


@dataclass(frozen=True)
class Localization:
    """The classes asked for in one photo, best first, with the heat of the first of them.

    heat: (h, w) in [0, 1], over the part `region` of the image.
    """

    image: NDArray[np.uint8] = field(repr=False)
    found: Sequence[Found]
    heat: NDArray[np.floating] = field(repr=False)
    region: Box = field(repr=False)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the image."""
        return self.image.shape[1], self.image.shape[0]

    @property
    def best(self) -> Found:
        return self.found[0]

    @property
    def box(self) -> Box:
        """The box of the best class."""
        return self.found[0].box

    @property
    def label(self) -> str:
        """The name of the best class."""
        return self.found[0].name

    @property
    def score(self) -> float:
        return self.found[0].score

    def overlay(self, largest: int = MAX_SIDE) -> Image.Image:
        """The photo with the heat, the box of the best class, and what the other classes score."""
        best = self.found[0]
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
