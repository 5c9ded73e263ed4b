"""Test images, and the way back from the network's square to the pixels of the original.

Two kinds occur among the named protocols:

- `resize`: the whole image to S x S;
- `crop`: to R x R, then the centre S x S, with R = 256 for S = 224 and in that proportion for other sizes.

For classes alone there are also *ten crops*: from R x R the S x S squares at the four corners and in the
centre, and the same of the mirrored image.

All use Pillow's antialiased bilinear filter, as `torchvision.transforms.Resize` does on Pillow images, bit
for bit. (OpenCV's linear resize differs from it by 1.8 grey levels on average.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Literal, TypeAlias

import numpy as np
from PIL import Image

from wsol.records import Box

ViewKind: TypeAlias = Literal["resize", "crop"]


FLOAT_INTEGERS = 2**24  # whole numbers up to this are exact as the 32-bit floats of Pillow's `box`


def resize_square(
    image: np.ndarray | Image.Image, side: int, crop: tuple[int, int, int] | None = None
) -> np.ndarray:
    """An RGB image (H, W, 3) as the square (side, side, 3) of uint8, whatever its proportions.

    crop: (left, top, size), to return only these pixels of it, (size, size, 3), bit for bit. What lies
    outside is not computed where Pillow can express the crop without rounding.

    Training and test both use this resize, so that their images look alike.
    """
    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    left, top, size = crop or (0, 0, side)
    width, height = picture.size
    if _crops_exactly(width, side) and _crops_exactly(height, side):
        edges = (left * width, top * height, (left + size) * width, (top + size) * height)
        x0, y0, x1, y1 = (edge / side for edge in edges)
        return np.array(picture.resize((size, size), Image.Resampling.BILINEAR, box=(x0, y0, x1, y1)))
    square = np.asarray(picture.resize((side, side), Image.Resampling.BILINEAR))
    return square[top : top + size, left : left + size].copy()


def _crops_exactly(length: int, side: int) -> bool:
    """Whether every multiple of length / side up to length is exact as a 32-bit float.

    Then the filter's places in the original are the same numbers for a crop and for the whole. This holds for
    every length where side is a power of two, as 256 is.
    """
    denominator = side // gcd(length, side)
    return denominator & (denominator - 1) == 0 and length * denominator <= FLOAT_INTEGERS


@dataclass(frozen=True)
class View:
    """How an image becomes the square that the network sees at test.

    kind: `resize` or `crop`. side: S, the side of that square in pixels.
    """

    kind: ViewKind
    side: int

    @property
    def resized(self) -> int:
        """R, the side of the square before the crop; S where nothing is cropped."""
        return self.side if self.kind == "resize" else round(self.side * 256 / 224)

    @property
    def margin(self) -> int:
        """What the crop leaves out on the left and the top, in pixels of the resized square."""
        return round((self.resized - self.side) / 2)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """(H, W, 3) uint8 -> (S, S, 3) uint8."""
        return resize_square(image, self.resized, (self.margin, self.margin, self.side))

    def ten_crops(self, image: np.ndarray) -> np.ndarray:
        """(H, W, 3) uint8 -> (10, S, S, 3) uint8: four corners and the centre, then the same mirrored.

        R is that of the view `crop`, whichever this one is.
        """
        cropped = View("crop", self.side)
        square, m, far = resize_square(image, cropped.resized), cropped.margin, cropped.resized - self.side
        corners = ((0, 0), (0, far), (far, 0), (far, far), (m, m))
        return np.stack(
            [
                side[top : top + self.side, left : left + self.side]
                for side in (square, square[:, ::-1])
                for top, left in corners
            ]
        )

    def region(self, size: tuple[int, int]) -> Box:
        """What the square shows of an image of that (width, height), as a box in its pixels."""
        width, height = size
        low, high = self.margin / self.resized, (self.margin + self.side) / self.resized
        return Box(low * width, low * height, high * width, high * height)

    def to_original(self, box: Box, size: tuple[int, int]) -> Box:
        """A box in pixels of the square, in pixels of the original image of that (width, height)."""
        region = self.region(size)
        sx, sy = region.width / self.side, region.height / self.side
        return Box(
            region.x0 + sx * box.x0, region.y0 + sy * box.y0, region.x0 + sx * box.x1, region.y0 + sy * box.y1
        )

    def to_square(self, box: Box, size: tuple[int, int]) -> Box:
        """A box in pixels of the original image, in pixels of the square; unclipped."""
        region = self.region(size)
        sx, sy = self.side / region.width, self.side / region.height
        return Box(
            sx * (box.x0 - region.x0),
            sy * (box.y0 - region.y0),
            sx * (box.x1 - region.x0),
            sy * (box.y1 - region.y0),
        )
