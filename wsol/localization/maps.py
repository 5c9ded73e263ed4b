"""From the raw class map of a localizer to a score map in [0, 1] at the size where boxes are drawn.

Two things happen to a map, resizing and normalising, and the field does them in either order. A `Recipe`
names the order and the kind of both, so that protocols which agree on it can share the result.

Normalisations of a map x, all clipped to [0, 1]:

- ``minmax``: (x - min x) / (max x - min x)
- ``minmax-eps``: (x - min x) / (max x - min x + 1e-5), as the code of BAS (2023) has it
- ``max``: relu(x) / max x
- ``pas``: (x - min x) / q, with q the 90th percentile of x - min x (percentile as a standard for
  thresholding, Bae et al. 2020)
- ``ivr``: relu(x - q) / max(x - q), with q the 40th percentile of x (Kim et al. 2021; the percentile is tuned
  for each network there, 40 is our choice)
- ``none``: x as it is

A map that holds NaN or infinity, and a map that a normalisation would divide by zero, becomes all zeros: no
foreground.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

FloatMap = NDArray[np.floating]

PAS_SHARE = 0.90
IVR_SHARE = 0.40
EPS = 1e-5

INTERPOLATIONS = {"bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}


@dataclass(frozen=True)
class Recipe:
    """How a raw map becomes a score map: which interpolation, which normalisation, which of them first.

    `frame` is the size the map is brought to: ``input``, the square that the network saw, or ``original``,
    the image as it lies on disk.
    """

    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    normalize: str = "minmax"
    first: Literal["resize", "normalize"] = "resize"
    frame: Literal["input", "original"] = "input"


def minmax(x: FloatMap) -> FloatMap:
    return _divide(x - x.min(), x.max() - x.min())


def minmax_eps(x: FloatMap) -> FloatMap:
    return (x - x.min()) / (x.max() - x.min() + EPS)


def maximum(x: FloatMap) -> FloatMap:
    return _divide(np.maximum(x, 0), x.max())


def pas(x: FloatMap) -> FloatMap:
    shifted = x - x.min()
    top = _quantile(shifted, PAS_SHARE)
    return np.minimum(_divide(shifted, top if top > 0 else shifted.max()), 1)


def ivr(x: FloatMap) -> FloatMap:
    kept = np.maximum(x - _quantile(x, IVR_SHARE), 0)
    return _divide(kept, kept.max())


def unchanged(x: FloatMap) -> FloatMap:
    return np.clip(x, 0, 1)


NORMALIZATIONS: dict[str, Callable[[FloatMap], FloatMap]] = {
    "minmax": minmax,
    "minmax-eps": minmax_eps,
    "max": maximum,
    "pas": pas,
    "ivr": ivr,
    "none": unchanged,
}


def resize(x: FloatMap, size: tuple[int, int], interpolation: str) -> FloatMap:
    """The map at `size` (width, height), sampled as OpenCV does; the same map where it has that size."""
    if (x.shape[1], x.shape[0]) == size:
        return x
    return cv2.resize(x, size, interpolation=INTERPOLATIONS[interpolation])


def prepare(raw: FloatMap, recipe: Recipe, size: tuple[int, int]) -> FloatMap:
    """The score map of a raw map (h, w): in [0, 1], of `size` (width, height), in the raw map's precision.

    A bicubic resize after the normalisation overshoots, so its result is clipped once more.
    """
    if not np.isfinite(raw).all():
        return np.zeros((size[1], size[0]), raw.dtype)
    normalize = NORMALIZATIONS[recipe.normalize]
    if recipe.first == "resize":
        return normalize(resize(raw, size, recipe.interpolation))
    resized = resize(normalize(raw), size, recipe.interpolation)
    return unchanged(resized) if recipe.interpolation == "bicubic" else resized


def is_constant(raw: FloatMap) -> bool:
    """Whether a map says nothing about place: all of its values are equal."""
    return bool(raw.min() == raw.max())


def _quantile(x: FloatMap, share: float) -> float:
    """The value that stands at `share` of the sorted pixels."""
    rank = int(x.size * share)
    return float(np.partition(x, rank, axis=None)[rank])


def _divide(x: FloatMap, by: float) -> FloatMap:
    return x / by if by > 0 else np.zeros_like(x)
