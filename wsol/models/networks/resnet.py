"""ResNets for small images: their first layer is one 3x3 convolution, without stride and without pooling.

He et al., "Deep Residual Learning for Image Recognition", CVPR 2016.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wsol.models.classifier.opening import Blueprint
from wsol.registry import NETWORKS

SIDE = 32  # of the images that these networks are for


def with_small_stem(name: str, classes: int) -> Blueprint:
    """torchvision's ResNet `name` with a 3x3 convolution of stride 1 in place of the 7x7 one and the pooling.

    The GPCA paper does not print its networks: this is what CIFAR code usually does (our reading).
    """
    import torchvision  # slow to import; reading a config does not need it

    network = torchvision.models.get_model(name, weights=None, num_classes=classes)
    network.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
    network.maxpool = nn.Identity()
    return Blueprint(network, image_size=SIDE)


@NETWORKS.register("resnet18", "ResNet18 for images of 32 px")
def resnet18(classes: int) -> Blueprint:
    return with_small_stem("resnet18", classes)


@NETWORKS.register("resnet34", "ResNet34 for images of 32 px")
def resnet34(classes: int) -> Blueprint:
    return with_small_stem("resnet34", classes)


@NETWORKS.register("resnet50", "ResNet50 for images of 32 px")
def resnet50(classes: int) -> Blueprint:
    return with_small_stem("resnet50", classes)


@NETWORKS.register("resnet_thin", "a ResNet of 6n + 2 layers with 16 to 64 channels, for images of 32 px")
def resnet_thin(classes: int, depth: int = 20) -> Blueprint:
    """He et al.'s own network for CIFAR, 0.27 M parameters with 20 layers.

    Departs from the paper: where a block changes the shape, its short cut is a 1x1 convolution (their option
    B); they pad with zeros (option A).

    Args:
        depth: 8, 14, 20, 32, 44, 56, 110: 6n + 2.
    """
    blocks, rest = divmod(depth - 2, 6)
    if rest or blocks < 1:
        raise ValueError(f"depth must be 6n + 2, such as 8, 14 or 20, got {depth}")
    return Blueprint(ThinResNet(classes, blocks), image_size=SIDE)


class ThinResNet(nn.Module):
    """conv3x3 - BN - ReLU, three stages of `blocks` residual blocks with 16, 32 and 64 channels, GAP, linear.

    Shapes: (N, 3, 32, 32) -> (N, 16, 32, 32) -> (N, 32, 16, 16) -> (N, 64, 8, 8) -> (N, classes).
    """

    def __init__(self, classes: int, blocks: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, blocks, stride=1)
        self.layer2 = _stage(16, 32, blocks, stride=2)
        self.layer3 = _stage(32, 64, blocks, stride=2)
        self.fc = nn.Linear(64, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        logits: Tensor = self.fc(x.mean(dim=(2, 3)))
        return logits


def _stage(before: int, channels: int, blocks: int, stride: int) -> nn.Sequential:
    from torchvision.models.resnet import BasicBlock

    short_cut = None
    if before != channels:
        short_cut = nn.Sequential(
            nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
        )
    first = BasicBlock(before, channels, stride, short_cut)
    return nn.Sequential(first, *(BasicBlock(channels, channels) for _ in range(blocks - 1)))
