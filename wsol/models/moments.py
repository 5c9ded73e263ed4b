"""Mean and covariance of descriptors, added up batch by batch, so that memory does not grow with them.

A descriptor is the vector x in R^C at one place of a feature map. Sums of squares lose digits where the mean
is large, so means and scatter matrices are merged instead (Chan, Golub and LeVeque, 1983), in float64:

    d = m_b - m_a      m = m_a + d n_b / n      S = S_a + S_b + d d^T n_a n_b / n
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scatter:
    """n vectors in R^C: their number, mean (C,), and the sum of (x - mean)(x - mean)^T, (C, C)."""

    number: int
    mean: Floats
    scatter: Floats

    @classmethod
    def of(cls, vectors: Floats) -> Scatter:
        """vectors: (n, C)."""
        mean = vectors.mean(axis=0)
        centred = vectors - mean
        return cls(len(vectors), mean, centred.T @ centred)

    def __add__(self, other: Scatter) -> Scatter:
        number = self.number + other.number
        step = other.mean - self.mean
        between = np.outer(step, step) * (self.number * other.number / number)
        return Scatter(
            number, self.mean + step * (other.number / number), self.scatter + other.scatter + between
        )

    @property
    def covariance(self) -> Floats:
        """(C, C), divided by n."""
        return self.scatter / self.number


@dataclass(frozen=True)
class Moments:
    """What is kept of the feature maps (C, h, w) of some images.

    descriptors: of all places of all images. images: of the mean descriptor of each image. places: (h, w, C)
    the mean over the images at each place.
    """

    descriptors: Scatter
    images: Scatter
    places: Floats

    @classmethod
    def of(cls, features: Tensor) -> Moments:
        """features: (N, C, h, w)."""
        maps = features.detach().cpu().double().permute(0, 2, 3, 1).numpy()
        flat = maps.reshape(len(maps), -1, maps.shape[3])
        return cls(
            Scatter.of(flat.reshape(-1, flat.shape[2])), Scatter.of(flat.mean(axis=1)), maps.mean(axis=0)
        )

    def __add__(self, other: Moments) -> Moments:
        share = other.images.number / (self.images.number + other.images.number)
        return Moments(
            self.descriptors + other.descriptors,
            self.images + other.images,
            self.places + share * (other.places - self.places),
        )

    @staticmethod
    def total(parts: Iterable[Moments | None]) -> Moments | None:
        """The moments of all images of the parts, taken one by one; None where there is no image."""
        there = (part for part in parts if part is not None)
        first = next(there, None)
        return None if first is None else reduce(Moments.__add__, there, first)
