"""Training augmentation, behind one interface: the only place that knows albumentations."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # it would ask the network for its newest version at import
import albumentations as A


class Augment(Protocol):
    """A random change of an image; the same key gives the same change.

    image: (R, R, 3) uint8, resized as the test image is. key: whole numbers that name the draw, such as
    (epoch, index). Returns (S, S, 3) uint8.
    """

    def __call__(self, image: np.ndarray, key: tuple[int, ...]) -> np.ndarray: ...


class CropFlip:
    """Crop S x S at random, flip left-right with probability 1/2.

    Every draw is seeded by (seed, key), so the worker and the time do not matter.
    """

    def __init__(self, side: int, seed: int) -> None:
        self.seed = seed
        self._chance = [A.RandomCrop(side, side), A.HorizontalFlip(p=0.5)]
        self._compose = A.Compose(self._chance)

    def __call__(self, image: np.ndarray, key: tuple[int, ...]) -> np.ndarray:
        # Compose.set_random_seed would give one seed to all, and tie the flip to the place of the crop.
        seeds = np.random.SeedSequence((self.seed, *key)).generate_state(len(self._chance))
        for transform, seed in zip(self._chance, seeds.tolist(), strict=True):
            transform.set_random_seed(seed)
        return self._compose(image=image)["image"]
