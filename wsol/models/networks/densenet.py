"""DenseNets for small images: DenseNet40 and DenseNet-BC100, both with a growth rate of 12.

Huang et al., "Densely Connected Convolutional Networks", CVPR 2017: three blocks, a 1x1 convolution and a
pooling of 2x2 between them. BC: each layer has a bottleneck (B), and transitions halve the channels (C).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wsol.models.classifier.opening import Blueprint
from wsol.registry import NETWORKS

BLOCKS = 3
BOTTLENECK = 4  # channels of a bottleneck, as a multiple of the growth rate


@NETWORKS.register("densenet40", "DenseNet of 40 layers, for images of 32 px")
def densenet40(classes: int, growth: int = 12) -> Blueprint:
    return Blueprint(SmallDenseNet(classes, growth, layers=12, channels=16), image_size=32)


@NETWORKS.register("densenet_bc100", "DenseNet-BC of 100 layers, for images of 32 px")
def densenet_bc100(classes: int, growth: int = 12) -> Blueprint:
    network = SmallDenseNet(classes, growth, layers=16, channels=2 * growth, bottleneck=True, compression=0.5)
    return Blueprint(network, image_size=32)


class DenseLayer(nn.Module):
    """Appends `growth` new channels to the map: x -> (x, conv3x3(relu(BN x))).

    bottleneck: BN, ReLU and a 1x1 convolution to 4 growth channels come before that.

    Shapes: (N, C, H, W) -> (N, C + growth, H, W).
    """

    def __init__(self, channels: int, growth: int, bottleneck: bool) -> None:
        super().__init__()
        before = BOTTLENECK * growth if bottleneck else channels
        self.reduce = (
            nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, before, 1, bias=False))
            if bottleneck
            else nn.Identity()
        )
        self.norm = nn.BatchNorm2d(before)
        self.conv = nn.Conv2d(before, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.conv(torch.relu(self.norm(self.reduce(x))))], dim=1)


class SmallDenseNet(nn.Module):
    """conv3x3, three dense blocks with transitions between them, BN, ReLU, GAP, one linear layer.

    Args:
        layers: of each block. channels: of the first convolution.
        compression: of the channels, in each transition.
    """

    def __init__(
        self,
        classes: int,
        growth: int,
        layers: int,
        channels: int,
        bottleneck: bool = False,
        compression: float = 1.0,
    ) -> None:
        super().__init__()
        if growth < 1:
            raise ValueError(f"growth must be at least 1, got {growth}")
        features: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1, bias=False)]
        for block in range(BLOCKS):
            for _ in range(layers):
                features.append(DenseLayer(channels, growth, bottleneck))
                channels += growth
            if block < BLOCKS - 1:
                kept = int(channels * compression)
                features.append(_transition(channels, kept))
                channels = kept
        self.features = nn.Sequential(*features)
        self.norm = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.features(x)))
        logits: Tensor = self.classifier(x.mean(dim=(2, 3)))
        return logits


def _transition(channels: int, kept: int) -> nn.Sequential:
    return nn.Sequential(
        nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, kept, 1, bias=False), nn.AvgPool2d(2)
    )
