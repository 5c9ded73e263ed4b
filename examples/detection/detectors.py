"""SSD300 and FCOS of torchvision with an attention at the places and with the recipes of the GPCA paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torchvision.models import ResNet50_Weights, VGG16_Weights
from torchvision.models.detection import fcos_resnet50_fpn, ssd300_vgg16
from torchvision.transforms import v2

from gpca import Insertion, insert_attention


@dataclass(frozen=True)
class Detector:
    """A detector: how it is built, where the attention goes, and how the paper trains it.

    pretrained: arguments for ImageNet weights in the backbone. resizes: it takes the sides of the images,
    where others have a size of their own. rate: learning rate at the start; drops: when it falls to a tenth,
    as shares of the training.
    """

    build: Callable[..., nn.Module]
    after: str
    pretrained: Mapping[str, Any]
    resizes: bool
    options: Mapping[str, Any]
    rate: float
    drops: tuple[float, ...]
    augment: tuple[v2.Transform, ...]


DETECTORS = {
    "ssd300": Detector(
        ssd300_vgg16,
        after="backbone.extra.0.6",  # the ReLU of conv5_3
        pretrained={
            "weights_backbone": VGG16_Weights.IMAGENET1K_FEATURES,
            "trainable_backbone_layers": 5,  # all of them, as SSD does
        },
        resizes=False,
        options={},
        rate=1e-3,
        drops=(40 / 60, 50 / 60),
        augment=(v2.RandomPhotometricDistort(), v2.RandomZoomOut(), v2.RandomIoUCrop()),
    ),
    "fcos": Detector(
        fcos_resnet50_fpn,
        after="backbone",  # every output of the feature pyramid gets an attention of its own
        pretrained={"weights_backbone": ResNet50_Weights.IMAGENET1K_V1},
        resizes=True,
        options={"score_thresh": 0.05},  # as MMDetection, with which the paper worked; torchvision has 0.2
        rate=1e-2,
        drops=(8 / 12, 11 / 12),
        augment=(),
    ),
}


def build_detector(
    name: str,
    num_classes: int,
    attention: str,
    *,
    sides: Sequence[int] = (800, 1333),
    pretrained: bool = False,
    **options: Any,
) -> tuple[nn.Module, Insertion]:
    """The detector with the attention in it, and what was inserted.

    num_classes: without the background. sides: the shorter side to which a detector that resizes brings the
    images, and the most that the longer one may have. options: of the attention.
    """
    chosen = DETECTORS[name]
    arguments = dict(chosen.options)
    if chosen.resizes:
        arguments |= {"min_size": sides[0], "max_size": sides[1]}
    arguments |= chosen.pretrained if pretrained else {"weights_backbone": None}
    model = chosen.build(weights=None, num_classes=num_classes + 1, **arguments)
    images = [torch.zeros(3, sides[0], sides[0])]  # detectors take a list
    return model, insert_attention(model, attention, after=chosen.after, example=images, **options)
