"""DDT's head: the first principal direction of the features of many images tells object from background."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from wsol.data.hierarchy import Hierarchy
from wsol.errors import DataError
from wsol.models.backbone import Outline
from wsol.models.heads.fitted import FittedHead, alone
from wsol.models.heads.head import MakeAttention, Tail
from wsol.models.moments import Moments
from wsol.models.principal_direction import PrincipalDirection
from wsol.records import LocalizerOutput
from wsol.registry import HEADS


@HEADS.register(
    "ddt", "no labels, no training: the first principal direction of the features (Wei et al., 2019)"
)
class DDT(FittedHead):
    """Deep descriptor transforming: what the images have in common, from pretrained features alone.

        u = first principal direction, m = mean of the descriptors x of all places of many images
        map = u . (x - m)                     (N, 1, h, w)          object where map > 0

    The largest component of the object is the box. The sign of u is free: it is the one with which the map is
    larger inside the images than at their border.

    Wei et al., "Unsupervised Object Discovery and Co-Localization by Deep Descriptor Transforming", Pattern
    Recognition 2019. Departs from the paper: the direction comes from the training images and stays as it is
    for the test images, one direction for all classes; the sign rule is ours, as is the last stage of any
    backbone (there: the last convolution of VGG19).

    Args:
        images: how many training images the direction comes from, taken evenly; 0 for all of them.
    """

    cut: ClassVar[float | None] = 0.0

    mean: Tensor
    direction: Tensor

    def __init__(
        self,
        outline: Outline,
        classes: int,
        hierarchy: Hierarchy | None,
        make_attention: MakeAttention,
        images: int = 400,
    ) -> None:
        super().__init__()
        if images < 0 or images == 1:
            raise ValueError(f"images must be 0 (all of them) or at least 2, got {images}")
        self.images = images
        self.reads = (outline.last.name,)
        self.register_buffer("mean", torch.zeros(outline.last.channels))
        self.register_buffer("direction", torch.zeros(outline.last.channels))

    def forward(self, features: Mapping[str, Tensor], labels: Tensor | None, tail: Tail) -> LocalizerOutput:
        maps = self.project(features[self.reads[0]])
        return LocalizerOutput(maps.new_zeros(maps.shape[:2]), maps, {})

    def project(self, x: Tensor) -> Tensor:
        """u . (x - m): (N, C, h, w) -> (N, 1, h, w)."""
        offset = self.direction @ self.mean
        return torch.einsum("nchw,c->nhw", x, self.direction.to(x.dtype))[:, None] - offset

    def fit(
        self,
        batches: Iterable[Mapping[str, Tensor]],
        gather: Callable[[Any], list[Any]] = alone,
    ) -> dict[str, float]:
        own = Moments.total(Moments.of(features[self.reads[0]]) for features in batches)
        total = Moments.total(gather(own))
        if total is None:
            raise DataError("no image could be read: there is nothing to fit a direction to")
        found = PrincipalDirection.of(total)
        self.set_direction(found)
        return found.figures()

    def set_direction(self, found: PrincipalDirection) -> None:
        self.mean.copy_(torch.from_numpy(found.mean))
        self.direction.copy_(torch.from_numpy(found.direction))
