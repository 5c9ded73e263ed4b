"""The foreground head: one map of the object, whatever its class, learned from another localizer's maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wsol.data.hierarchy import Hierarchy
from wsol.models.backbone import Feature, Outline
from wsol.models.heads.class_maps import convolution
from wsol.models.heads.head import Head, MakeAttention, Tail
from wsol.models.heads.targets import BACKGROUND, FOREGROUND, Targets, one_label
from wsol.records import LocalizerOutput
from wsol.registry import HEADS


@HEADS.register("foreground", "the object whatever its class, from the maps of another run: `wsol refine`")
class ForegroundHead(Head):
    """A light segmenter on several stages of the backbone, without classes and without labels.

        y = relu(sum over s of enlarge(conv1x1(x_s)))            x_s: stages of several strides
        z = conv1x1(relu(conv3x3(y)))                            (N, 1, h, w), h x w: of the finest stage
        map = sigmoid(z)

    Each pixel of a training image is foreground, background or undecided, as `wsol.training.guides` reads it
    from the map of the run that is refined. z is enlarged to the image (bilinear), and

        loss = (mean over the foreground of -ln sigmoid(z) + mean over the background of -ln sigmoid(-z)) / 2

    Undecided pixels count nothing, so that the network itself decides about them by what it has learned of
    the others.

    Our reading of the second stage of SPOL (Wei et al., "Shallow Feature Matters for Weakly Supervised Object
    Localization", CVPR 2021). PSOL (Zhang et al., "Rethinking the Route Towards Weakly Supervised Object
    Localization", CVPR 2020) regresses a box at this place.

    Args:
        stride: of the finest stage that is read. Of each stride from there on, the last stage is.
        channels: width of y.

    Raises:
        ValueError: no stage of this stride or a coarser one, or no channels.
    """

    knows_classes: ClassVar[bool] = False
    guided: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = True  # a pixel has one label: transforms that mix images are refused

    def __init__(
        self,
        outline: Outline,
        classes: int,
        hierarchy: Hierarchy | None,
        make_attention: MakeAttention,
        stride: int = 8,
        channels: int = 128,
    ) -> None:
        super().__init__()
        if channels < 1:
            raise ValueError(f"channels must be at least 1, got {channels}")
        stages = last_of_each_stride(outline, stride)
        self.reads = tuple(stage.name for stage in stages)
        self.laterals = nn.ModuleList(convolution(stage.channels, channels, 1) for stage in stages)
        self.mix = convolution(channels, channels, 3)
        self.score = convolution(channels, 1, 1)

    def forward(self, features: Mapping[str, Tensor], labels: Tensor | None, tail: Tail) -> LocalizerOutput:
        finest, *coarser = (
            lateral(features[name]) for name, lateral in zip(self.reads, self.laterals, strict=True)
        )
        y = finest
        for part in coarser:
            y = y + F.interpolate(part, size=finest.shape[2:], mode="bilinear")
        z = self.score(self.mix(y.relu()).relu())
        return LocalizerOutput(z.new_zeros(z.shape[:2]), z.sigmoid(), {"scores": z})

    def loss(self, output: LocalizerOutput, targets: Targets) -> dict[str, Tensor]:
        pixels = one_label(targets)
        z = F.interpolate(output.extras["scores"].float(), size=pixels.shape[1:], mode="bilinear")[:, 0]
        return {
            "foreground": masked_mean(F.softplus(-z), pixels == FOREGROUND) / 2,
            "background": masked_mean(F.softplus(z), pixels == BACKGROUND) / 2,
        }

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        """The one map, for whatever class is asked for: labels (N, *K) -> (N, *K, h, w)."""
        one = output.maps.reshape(len(output.maps), *[1] * (labels.ndim - 1), *output.maps.shape[2:])
        return one.expand(*labels.shape, *output.maps.shape[2:])


def last_of_each_stride(outline: Outline, finest: int) -> list[Feature]:
    """The last stage of every stride that is at least `finest`, in the order of the flow.

    Raises:
        ValueError: there is none.
    """
    last = {feature.stride: feature for feature in outline.features.values() if feature.stride >= finest}
    if not last:
        strides = sorted({feature.stride for feature in outline.features.values()})
        raise ValueError(f"stride: no stage of stride {finest} or more; there are {strides}")
    return list(last.values())


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean of the values where the mask is; 0 where it is nowhere."""
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp(min=1)
