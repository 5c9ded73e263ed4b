"""Training augmentation, behind one interface: the only place that knows albumentations."""

from __future__ import annotations

import os
from random import Random
from typing import Protocol

import numpy as np

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # it would ask the network for its newest version at import
import albumentations as A
from PIL import Image

from wsol.data.transforms import resize_square


class Augment(Protocol):
    """A training image: resized as the test image is, then changed at random; the same key, the same change.

    image: RGB. key: whole numbers that name the draw, such as (epoch, index). Returns (S, S, 3) uint8.
    """

    def __call__(self, image: Image.Image, key: tuple[int, ...]) -> np.ndarray: ...


class CropFlip:
    """Resize to R x R, add a black border of `pad` pixels, crop S x S at random, flip left-right with
    probability 1/2.

    Every draw is seeded by (seed, key), so the worker and the time do not matter. Without a border the crop
    is drawn before the resize, which then computes little else.
    """

    def __init__(self, resize: int, side: int, seed: int, pad: int = 0) -> None:
        self.resize, self.side, self.seed, self.pad = resize, side, seed, pad
        self._crop = A.RandomCrop(side, side)
        self._flip = A.HorizontalFlip(p=0.5)

    def draw(self, key: tuple[int, ...]) -> tuple[int, int, bool]:
        """(left, top) of the crop in the resized image with its border, and whether it is flipped."""
        # A seed for each: one for both would tie the flip to the place of the crop.
        seeds = np.random.SeedSequence((self.seed, *key)).generate_state(2).tolist()
        for transform, seed in zip((self._crop, self._flip), seeds, strict=True):
            transform.py_random = Random(seed)
        # Of albumentations only the draws: its pipeline around them costs more than the crop.
        whole = self.resize + 2 * self.pad
        shape = {"shape": (whole, whole, 3)}
        left, top, _, _ = self._crop.get_params_dependent_on_data(shape, {})["crop_coords"]
        return left, top, self._flip.should_apply()

    def cut_out(self, square: np.ndarray, key: tuple[int, ...]) -> np.ndarray:
        """The pixels of an (R, R) array that the image of this key shows, (S, S), flipped as it is."""
        left, top, flipped = self.draw(key)
        part = square[top : top + self.side, left : left + self.side]
        return part[:, ::-1] if flipped else part

    def __call__(self, image: Image.Image, key: tuple[int, ...]) -> np.ndarray:
        left, top, flipped = self.draw(key)
        if self.pad:
            border = (self.pad, self.pad)
            padded = np.pad(resize_square(image, self.resize), (border, border, (0, 0)))
            square = padded[top : top + self.side, left : left + self.side]
        else:
            square = resize_square(image, self.resize, (left, top, self.side))
        return square[:, ::-1] if flipped else square
