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
from wsol.localization.maps import NORMALIZATIONS, Recipe
from wsol.records import Box
from wsol.registry import suggest

BoxRule = Literal["largest component", "largest contour", "all contours", "all foreground"]
Size = tuple[int, int]  # width, height

BILINEAR = Recipe("bilinear", "minmax", "resize", "input")


@dataclass(frozen=True)
class Extraction:
    """From a raw class map to boxes.

    view: the test image, ``resize`` to the network's side, or ``crop``: to a larger side, then the centre.
    recipe: how the raw map becomes a score map in [0, 1], and in which frame.
    quantized: whether levels are int(t max) of the map in 8 bits.
    strict: whether foreground is `> t` or `>= t`.
    share_of_max: whether t is a share of the map's maximum; this matters for maps that are not normalised.
    fixed: the threshold that needs no boxes to choose it. low, high, step: the grid that is searched.
    box: which box stands for the foreground. ``all contours`` counts the best of them.
    holes: whether the contours of holes are among all contours.
    empty: the box where there is no foreground, None for the whole frame.
    flat_is_empty: whether a constant map has no foreground, also where it is scored as it is.

    The *frame* is the grid of pixels that a map is cut in: the square that the network saw, or the original
    image, as `recipe.frame` says. Its last pixel is the far end of a box that reaches its edge.
    """

    view: ViewKind = "resize"
    recipe: Recipe = BILINEAR
    quantized: bool = False
    strict: bool = True
    share_of_max: bool = False
    fixed: float = 0.2
    low: float = 0.0
    high: float = 1.0
    step: float = 0.01
    box: BoxRule = "largest contour"
    holes: bool = False
    empty: tuple[int, int, int, int] | None = None
    flat_is_empty: bool = True

    @cached_property
    def thresholds(self) -> NDArray[np.float64]:
        """The grid that is searched for the chosen and the oracle threshold, ascending."""
        return np.arange(self.low, self.high, self.step)

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
        """The same for maps that another program has normalised: they are taken as they are.

        Where t is a share of the maximum, that is the same as dividing by it.
        """
        return self.with_normalization("max" if self.share_of_max else "none")

    def for_own_cut(self, cut: float) -> Extraction:
        """The same for raw maps that bring a cut of their own: foreground is map > cut, the only threshold.

        The map is resized and then cut as it is, in the protocol's frame and with its interpolation, box and
        empty box. To be seen, it is relu(map - cut) divided by its maximum.
        """
        recipe = replace(self.recipe, normalize="max", first="resize")
        changed = replace(self, recipe=recipe, quantized=False, strict=True, share_of_max=False)
        return replace(changed, fixed=cut, low=cut, high=cut + 1, step=1.0)

    def frame_size(self, view: View, size: Size) -> Size:
        """(width, height) of the score map of an image of `size`."""
        return (view.side, view.side) if self.recipe.frame == "input" else size

    def empty_box(self, frame: Size) -> IntArray:
        """The box that stands for an empty foreground."""
        whole = (0, 0, frame[0] - 1, frame[1] - 1)
        return np.array(whole if self.empty is None else self.empty, dtype=np.int64)

    def to_original(self, view: View, box: ArrayLike, size: Size) -> Box:
        """A box of the frame in pixels of the original image, for drawings and exports.

        The far ends of a frame are its last pixels, so a box that reaches them is taken to reach the edge.
        """
        width, height = self.frame_size(view, size)
        x0, y0, x1, y1 = np.asarray(box, dtype=np.float64).tolist()
        framed = Box(x0, y0, width if x1 >= width - 1 else x1, height if y1 >= height - 1 else y1)
        original = framed if self.recipe.frame == "original" else view.to_original(framed, size)
        return original.clip(*size)

    def all_to_original(self, view: View, boxes: IntArray, size: Size) -> NDArray[np.float64]:
        """(T, 4) the same for many boxes; all zero where the size of the image is not known."""
        if 0 in size:
            return np.zeros(boxes.shape)
        distinct, back = np.unique(boxes, axis=0, return_inverse=True)
        moved = [self.to_original(view, box, size) for box in distinct]
        return np.array(moved, dtype=np.float64)[back.reshape(-1)]
