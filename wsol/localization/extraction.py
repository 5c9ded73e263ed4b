"""How a raw map becomes boxes, stated as data: test image, score map, thresholds, box, and the empty case.

An `Extraction` is the half of a protocol that needs no truth, so that photos, overlays, validation and scores
cut a map in the same way. The other half, the rule of a hit, is `wsol.scoring.protocols.Protocol`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wsol.data.transforms import View, ViewKind
from wsol.errors import ConfigError
from wsol.localization.boxes import IntArray
from wsol.localization.grey import Grey
from wsol.localization.maps import NORMALIZATIONS, Recipe
from wsol.records import Box
from wsol.registry import suggest

BoxRule = Literal[
    "largest component", "first largest component", "largest contour", "all contours", "all foreground"
]
FarEnd = Literal["clipped", "beyond", "last"]
Size = tuple[int, int]  # width, height

BILINEAR = Recipe("bilinear", "minmax", "resize", "input")


@dataclass(frozen=True)
class Extraction:
    """From a raw class map to boxes.

    view: the test image, ``resize`` to the network's side, or ``crop``: to a larger side, then the centre.
    recipe: how the raw map becomes a score map in [0, 1], and in which frame.
    grey: how the map becomes an 8-bit image whose levels are int(t max); None to cut the map itself at t.
    strict: whether foreground is `> t` or `>= t`.
    fixed: the threshold that needs no boxes to choose it. step: of the thresholds from 0 to 1 that are
    searched. searched: these instead, ascending.
    box: which box stands for the foreground. ``all contours`` counts the best of them. Between components of
    equal size ``largest component`` takes the one whose box is topmost, then leftmost, and ``first largest
    component`` the one whose first pixel comes first, row by row.
    holes: whether the contours of holes are among all contours.
    far_end: what the far ends of a box name: ``beyond`` is x + width, one beyond the last pixel; ``clipped``
    the same, clipped to the last pixel of the frame; ``last`` the last pixel of the box, x + width - 1.
    empty: the box where there is no foreground, None for the whole frame.
    flat_is_empty: whether a constant map has no foreground, also where it is scored as it is.

    The *frame* is the grid of pixels that a map is cut in: the square that the network saw, or the original
    image, as `recipe.frame` says.
    """

    view: ViewKind = "resize"
    recipe: Recipe = BILINEAR
    grey: Grey | None = None
    strict: bool = True
    fixed: float = 0.2
    step: float = 0.01
    searched: tuple[float, ...] = ()
    box: BoxRule = "largest contour"
    holes: bool = False
    far_end: FarEnd = "clipped"
    empty: tuple[int, int, int, int] | None = None
    flat_is_empty: bool = True

    @cached_property
    def thresholds(self) -> NDArray[np.float64]:
        """The grid that is searched for the chosen and the oracle threshold, ascending."""
        return np.array(self.searched) if self.searched else np.arange(0, 1, self.step)

    @property
    def single_box(self) -> BoxRule:
        """The rule where one box is wanted, as in a drawing."""
        return "largest contour" if self.box == "all contours" else self.box

    def with_normalization(self, name: str) -> Extraction:
        """The same with another map normalisation."""
        if name not in NORMALIZATIONS:
            raise ConfigError(f"unknown normalization {name!r}{suggest(name, NORMALIZATIONS)}")
        return replace(self, recipe=replace(self.recipe, normalize=name))

    def for_given_maps(self) -> Extraction:
        """The same for maps that another program has normalised: they are taken as they are."""
        return self.with_normalization("none")

    def for_own_cut(self, cut: float) -> Extraction:
        """The same for raw maps that bring a cut of their own: foreground is map > cut, the only threshold.

        The map is resized and then cut as it is, in the protocol's frame and with its interpolation, box and
        empty box. To be seen, it is relu(map - cut) divided by its maximum.
        """
        recipe = replace(self.recipe, normalize="max", first="resize")
        return replace(self, recipe=recipe, grey=None, strict=True, fixed=cut, searched=(cut,))

    def frame_size(self, view: View, size: Size) -> Size:
        """(width, height) of the score map of an image of `size`."""
        return (view.side, view.side) if self.recipe.frame == "input" else size

    def end(self, boxes: IntArray, frame: Size) -> IntArray:
        """Boxes (n, 4) that end one beyond their last pixel, with the far ends that the protocol counts."""
        if self.far_end == "clipped":
            width, height = frame
            return np.minimum(boxes, [width, height, width - 1, height - 1])
        return boxes - np.array([0, 0, 1, 1], dtype=np.int64) if self.far_end == "last" else boxes

    def empty_box(self, frame: Size) -> IntArray:
        """The box that stands for an empty foreground."""
        if self.empty is not None:
            return np.array(self.empty, dtype=np.int64)
        return self.end(np.array([[0, 0, *frame]], dtype=np.int64), frame)[0]

    def to_original(self, view: View, box: ArrayLike, size: Size) -> Box:
        """A box of the frame in pixels of the original image, for drawings and exports.

        Where far ends are clipped to the last pixel, a box that reaches it is taken to reach the edge.
        """
        width, height = self.frame_size(view, size)
        x0, y0, x1, y1 = np.asarray(box, dtype=np.float64).tolist()
        if self.far_end == "clipped":
            x1, y1 = width if x1 >= width - 1 else x1, height if y1 >= height - 1 else y1
        elif self.far_end == "last":
            x1, y1 = x1 + 1, y1 + 1
        framed = Box(x0, y0, x1, y1)
        original = framed if self.recipe.frame == "original" else view.to_original(framed, size)
        return original.clip(*size)

    def all_to_original(self, view: View, boxes: IntArray, size: Size) -> NDArray[np.float64]:
        """(T, 4) the same for many boxes; all zero where the size of the image is not known."""
        if 0 in size:
            return np.zeros(boxes.shape)
        distinct, back = np.unique(boxes, axis=0, return_inverse=True)
        moved = [self.to_original(view, box, size) for box in distinct]
        return np.array(moved, dtype=np.float64)[back.reshape(-1)]
