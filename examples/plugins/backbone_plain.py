"""A backbone: a network as named stages that follow one another."""

from itertools import pairwise

from torch import nn

from wsol.models.backbone import Backbone
from wsol.models.weights import IMAGENET, Weights
from wsol.registry import BACKBONES


@BACKBONES.register("plain", "three strided convolutions")
def plain(weights: Weights, width: int = 16) -> Backbone:
    """Maps of stride 8. width: channels of the first stage; each later one has twice as many."""
    sizes = [3, width, 2 * width, 4 * width]
    network = nn.Sequential()
    for i, (inputs, outputs) in enumerate(pairwise(sizes)):
        layers = (nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs), nn.ReLU())
        network.add_module(f"stage{i}", nn.Sequential(*layers))
    return Backbone(
        dict(network.named_children()),
        weights.load(network, IMAGENET),
        placements={"paper": ("stage0", "stage1"), "original": ("stage1",)},
        pyramid=("stage0", "stage1", "stage2"),
        gamma=0.9,
    )
