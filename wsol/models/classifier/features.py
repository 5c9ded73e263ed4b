"""The output of a layer as maps (N, C, h, w), whatever the network's own layout is.

    (N, C, h, h)      maps, as convolutions give them
    (N, h, h, C)      maps with the channels last, as Swin gives them
    (N, p + h*h, C)   tokens, as ViT gives them: p tokens of the whole image, then one for each patch

The images here are square, and so are the maps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

SMALLEST = 2  # cells on a side: a single cell cannot say where


@dataclass(frozen=True)
class Layout:
    """How the output of one layer is read as maps. prefix: tokens before those of the patches."""

    kind: str
    prefix: int = 0

    @classmethod
    def of(cls, output: object, prefix: int | None = None) -> Layout | None:
        """The layout of a layer's output; None where it holds no maps.

        prefix: the number of tokens that are no patches, where the network tells it.

        >>> import torch
        >>> Layout.of(torch.zeros(1, 8, 7, 7)), Layout.of(torch.zeros(1, 197, 64))
        (Layout(kind='maps', prefix=0), Layout(kind='tokens', prefix=1))
        """
        if not isinstance(output, Tensor) or not output.is_floating_point():
            return None
        shape = tuple(output.shape)
        if len(shape) == 4 and shape[2] == shape[3] >= SMALLEST:
            return cls("maps")
        if len(shape) == 4 and shape[1] == shape[2] >= SMALLEST:
            return cls("channels last")
        if len(shape) == 3:
            before = shape[1] - math.isqrt(shape[1]) ** 2 if prefix is None else prefix
            patches = shape[1] - before
            if patches >= SMALLEST**2 and math.isqrt(patches) ** 2 == patches:
                return cls("tokens", before)
        return None

    def maps(self, output: Tensor) -> Tensor:
        """(N, C, h, w) from the layer's output, or from a gradient at it."""
        if self.kind == "maps":
            return output
        if self.kind == "channels last":
            return output.permute(0, 3, 1, 2)
        patches = output[:, self.prefix :]
        side = math.isqrt(patches.shape[1])
        return patches.transpose(1, 2).reshape(len(patches), -1, side, side)
