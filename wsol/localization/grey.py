"""A map in [0, 1] as an 8-bit grey image, in the ways of the field's code.

- ``bytes``: 255 times the map, truncated;
- ``colours``: coloured by matplotlib's table `cubehelix`, in 8 bits, and turned into grey by OpenCV, as the
  code of ADL does. Greys rise with the map, but not evenly: 0.2 of the largest grey is exceeded from
  52 / 256 = 0.2031 of the map on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from wsol.localization.maps import FloatMap

Grey = Literal["bytes", "colours"]
GreyImage = NDArray[np.uint8]

COLOURS = 256  # in the table
# How far red, green and blue lie from grey, along two directions that turn with the value (Green 2011).
COSINES = (-0.14861, -0.29227, 1.97294)
SINES = (1.78277, -0.90649, 0.0)


def to_bytes(score_map: FloatMap) -> GreyImage:
    return (score_map * 255).astype(np.uint8)


def through_colours(score_map: FloatMap) -> GreyImage:
    index = np.minimum((score_map * COLOURS).astype(np.int64), COLOURS - 1)
    return cubehelix_grey()[index]


@lru_cache(maxsize=1)
def cubehelix_grey() -> GreyImage:
    """(256,) the grey of each colour of `cubehelix`.

    A colour is x + x (1 - x) / 2 (p cos a + q sin a) with a = 2 pi (1/6 - 3/2 x), clipped to [0, 1].
    """
    x = np.linspace(0, 1, COLOURS)[:, None]
    angle = 2 * np.pi * (0.5 / 3 - 1.5 * x)
    colours = x + x * (1 - x) / 2 * (np.array(COSINES) * np.cos(angle) + np.array(SINES) * np.sin(angle))
    image = (np.clip(colours, 0, 1).astype(np.float32) * np.float32(255)).astype(np.uint8)
    return np.asarray(cv2.cvtColor(image[None], cv2.COLOR_RGB2GRAY)[0], dtype=np.uint8)


GREYS: dict[Grey, Callable[[FloatMap], GreyImage]] = {"bytes": to_bytes, "colours": through_colours}
