"""Training augmentation, behind one interface: the only place that knows albumentations."""

from __future__ import annotations

import os
from random import Random
from typing import NamedTuple, Protocol

import numpy as np

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # it would ask the network for its newest version at import
import albumentations as A
from PIL import Image

from wsol.config import Flip
from wsol.data.transforms import resize_square


class Augment(Protocol):
    """A training image: resized as the test image is, then changed at random; the same key, the same change.

    image: RGB. key: whole numbers that name the draw, such as (epoch, index). Returns (S, S, 3) uint8.
    """

    def __call__(self, image: Image.Image, key: tuple[int, ...]) -> np.ndarray: ...


class Draw(NamedTuple):
    """What was drawn for one image: the place of the crop, and whether it is flipped."""

    left: int
    top: int
    left_right: bool
    up_down: bool

    def flip(self, part: np.ndarray) -> np.ndarray:
        """An array (S, S, ...) as it was drawn: flipped in one, both or none of its directions."""
        if self.left_right:
            part = part[:, ::-1]
        return part[::-1] if self.up_down else part


class CropFlip:
    """Resize to R x R, add a black border of `pad` pixels, crop S x S at random, flip left-right with
    probability 1/2, and with `flip: both` up-down with probability 1/2 too.

    Every draw is seeded by (seed, key), so the worker and the time do not matter. Without a border the crop
    is drawn before the resize, which then computes little else.
    """

    def __init__(self, resize: int, side: int, seed: int, pad: int = 0, flip: Flip = "left-right") -> None:
        self.resize, self.side, self.seed, self.pad = resize, side, seed, pad
        self._crop = A.RandomCrop(side, side)
        self._left_right = A.HorizontalFlip(p=0.5)
        self._up_down = A.VerticalFlip(p=0.5 if flip == "both" else 0.0)

    def draw(self, key: tuple[int, ...]) -> Draw:
        """The crop, in the resized image with its border, and the flips."""
        # A seed for each: one for all would tie the flips to the place of the crop.
        transforms = (self._crop, self._left_right, self._up_down)
        seeds = np.random.SeedSequence((self.seed, *key)).generate_state(len(transforms)).tolist()
        for transform, seed in zip(transforms, seeds, strict=True):
            transform.py_random = Random(seed)
        # Of albumentations only the draws: its pipeline around them costs more than the crop.
        whole = self.resize + 2 * self.pad
        shape = {"shape": (whole, whole, 3)}
        left, top, _, _ = self._crop.get_params_dependent_on_data(shape, {})["crop_coords"]
        return Draw(left, top, self._left_right.should_apply(), self._up_down.should_apply())

    def cut_out(self, square: np.ndarray, key: tuple[int, ...]) -> np.ndarray:
        """The pixels of an (R, R) array that the image of this key shows, (S, S), flipped as it is."""
        drawn = self.draw(key)
        return drawn.flip(square[drawn.top : drawn.top + self.side, drawn.left : drawn.left + self.side])

    def __call__(self, image: Image.Image, key: tuple[int, ...]) -> np.ndarray:
        drawn = self.draw(key)
        if self.pad:
            border = (self.pad, self.pad)
            padded = np.pad(resize_square(image, self.resize), (border, border, (0, 0)))
            square = padded[drawn.top : drawn.top + self.side, drawn.left : drawn.left + self.side]
        else:
            square = resize_square(image, self.resize, (drawn.left, drawn.top, self.side))
        return drawn.flip(square)
