"""MobileNet V2."""

from __future__ import annotations

from torch import nn

from wsol.models.backbone import Backbone
from wsol.models.strides import StridePlan, set_strides, stride_plan
from wsol.models.weights import IMAGENET, Weights, download
from wsol.registry import BACKBONES


@BACKBONES.register("mobilenet_v2", "MobileNet V2 with its last stride removed (Sandler et al., 2018)")
def mobilenet_v2(weights: Weights, stride: StridePlan = "paper") -> Backbone:
    """Maps of stride 16: the last strided depthwise convolution gets stride 1. torchvision's network.

    stride: of stem, block2, block4, block7 and block14, which has 1 by default. The plan `bas` is
    {block7: 1, block14: 2}: maps of stride 8 after block13.

    Our reading: all of it; neither paper uses this network. Its bottlenecks end without a ReLU.
    """
    import torchvision  # takes seconds, and every config that is read imports this file

    network = torchvision.models.mobilenet_v2()
    network.classifier = nn.Identity()
    loaded = weights.load(
        network, IMAGENET, lambda: download(torchvision.models.MobileNet_V2_Weights.IMAGENET1K_V1.url)
    )
    layers = network.features
    stages = {
        "stem": layers[0],
        "block1": layers[1],
        "block2": layers[2],
        "block3": layers[3],
        "block4": layers[4],
        "block6": layers[5:7],
        "block7": layers[7],
        "block13": layers[8:14],
        "block14": layers[14],
        "head": layers[15:19],
    }
    strided = {f"block{i}": [layers[i].conv[1][0]] for i in (2, 4, 7, 14)}
    plan = stride_plan(stride, paper={"block14": 1}, bas={"block7": 1, "block14": 2})
    set_strides({"stem": [layers[0][0]], **strided}, plan, stages)
    return Backbone(
        stages,
        loaded,
        placements={
            "paper": ("stem", "block2", "block4", "block7", "block14"),
            "original": ("block7", "block14", "head"),
            "bas": ("block13",),
            "spg": ("block7", "block13"),
        },
        pyramid=("block6", "block13", "head"),
        gamma=0.95,
        published={"bas": {"alpha": 0.5, "beta": 1.5}},
    )
