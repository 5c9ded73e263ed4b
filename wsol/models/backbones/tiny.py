"""A small network of our own."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from wsol.models.backbone import Backbone
from wsol.models.strides import StridePlan, set_strides, stride_plan
from wsol.models.weights import IMAGENET, Weights
from wsol.registry import BACKBONES


@BACKBONES.register("tiny", "seven convolutions of our own, for demonstrations and tests on a CPU")
def tiny(weights: Weights, stride: StridePlan = "paper", centred: bool = False) -> Backbone:
    """Maps of stride 8 from 0.1 M parameters: trains from scratch in minutes on two cores.

    Plain 3x3 convolutions with BatchNorm and ReLU: on a CPU depthwise ones save less than they cost. The last
    two are 1x1, so that a cell sees only a small part of the image: a network that learns from scratch puts
    its evidence anywhere in what a cell sees, and where that is wide, the heat lies beside the bird.

    Args:
        stride: of stem, stage1 and stage2, 2 by default. The plan `bas` is the same: stage2 has stride 8.
        centred: 4x4 kernels instead of 3x3 where the stride is 2. A 3x3 kernel lies half a pixel off the
            middle of the cell that it makes. After three of them, a cell of the map looks at a place 3.5
            pixels above and left of where the map shows it: boxes lie too low and too far right by that.
    """
    halving = 4 if centred else 3
    network = nn.Sequential(
        OrderedDict(
            stem=_conv(3, 16, halving, stride=2),
            stage1=nn.Sequential(_conv(16, 32, halving, stride=2), _conv(32, 32, 3)),
            stage2=nn.Sequential(_conv(32, 64, halving, stride=2), _conv(64, 64, 3)),
            stage3=nn.Sequential(_conv(64, 128, 1), _conv(128, 128, 1)),
        )
    )
    loaded = weights.load(network, IMAGENET)
    stages = dict(network.named_children())
    strided = {name: [_first_convolution(stages[name])] for name in ("stem", "stage1", "stage2")}
    set_strides(strided, stride_plan(stride, paper={}), stages)
    return Backbone(
        stages,
        loaded,
        placements={
            "paper": ("stem", "stage1", "stage2"),
            "original": ("stage2", "stage3"),
            "bas": ("stage2",),
            "spg": ("stage1", "stage2"),
        },
        pyramid=("stage1", "stage2", "stage3"),
        gamma=0.9,
    )


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=(kernel - 1) // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


def _first_convolution(stage: nn.Module) -> nn.Module:
    return next(layer for layer in stage.modules() if isinstance(layer, nn.Conv2d))
