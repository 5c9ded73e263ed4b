"""The colours of every picture: heat from matplotlib's inferno, the predicted box blue, the true one red.

Inferno grows evenly in lightness, so equal steps of heat look equal, also in grey
print and to colour-blind eyes. Heat is laid over the photo with an alpha that follows it: a cold place
shows the photo, a hot place shows its colour.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

RGB = tuple[int, int, int]

PREDICTED: RGB = (31, 98, 255)
TRUTH: RGB = (226, 29, 42)
CASING: RGB = (255, 255, 255)  # a thin line beside box lines, for photos of the same colours
PAPER: RGB = (24, 24, 27)  # around the photo, where the picture is larger than it

MAX_ALPHA = 0.75
COLD = 0.08  # heat below this leaves the photo untouched


@cache
def heat_table() -> NDArray[np.uint8]:
    """(256, 4) RGBA of heat 0...255: inferno with the alpha that `heat_alpha` gives."""
    from matplotlib import colormaps

    heat = np.arange(256) / 255
    table = np.empty((256, 4), np.uint8)
    table[:, :3] = np.rint(colormaps["inferno"](heat)[:, :3] * 255).astype(np.uint8)
    table[:, 3] = np.rint(heat_alpha(heat) * 255).astype(np.uint8)
    table.flags.writeable = False
    return table


def heat_alpha(heat: NDArray[np.floating]) -> NDArray[np.floating]:
    """How much of the photo the heat hides: nothing below COLD, then in a straight line to MAX_ALPHA."""
    return MAX_ALPHA * np.clip((heat - COLD) / (1 - COLD), 0, 1)


def to_levels(heat: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Heat in [0, 1] as levels 0...255; NaN and infinity count as cold."""
    finite = np.nan_to_num(heat, nan=0.0, posinf=0.0, neginf=0.0)
    return np.rint(np.clip(finite, 0, 1) * 255).astype(np.uint8)


def blend_heat(image: NDArray[np.uint8], levels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The image (H, W, 3) with heat levels (H, W) laid over it."""
    table = heat_table()[levels]
    alpha = table[..., 3:].astype(np.float32) / 255
    mixed = image.astype(np.float32) * (1 - alpha) + table[..., :3].astype(np.float32) * alpha
    return np.rint(mixed).astype(np.uint8)
