"""A network that `wsol classify` trains: a function from the number of classes to the network."""

from torch import nn

from wsol.models.classifier.opening import Blueprint
from wsol.registry import NETWORKS


@NETWORKS.register("pixels", "two convolutions and a mean over the pixels")
def pixels(classes: int, width: int = 16) -> Blueprint:
    """width: channels between the convolutions. `network: {name: pixels, attention: se, after: "1"}`."""
    layers = (nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, classes, 1))
    return Blueprint(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()))
