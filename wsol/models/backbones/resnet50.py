"""ResNet50."""

from __future__ import annotations

from typing import Any, Literal

from torch import nn

from wsol.models.backbone import Backbone
from wsol.models.strides import StridePlan, set_strides, stride_plan
from wsol.models.weights import IMAGENET, Weights, download
from wsol.registry import BACKBONES


def move_strides_to_1x1(network: Any) -> None:
    """Give the stride of layers 2 to 4 to the first 1x1 convolution, as weights converted from Keras need."""
    for layer in (network.layer2, network.layer3, network.layer4):
        block = layer[0]
        block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride


@BACKBONES.register("resnet50", "ResNet50 with its last stride removed (He et al., 2016)")
def resnet50(
    weights: Weights,
    variant: Literal["torchvision", "keras"] = "torchvision",
    stride: StridePlan = "paper",
) -> Backbone:
    """Maps of stride 16: layer4 keeps the resolution of layer3, without dilation.

    variant: where the first block of layers 2 to 4 has its stride. `torchvision`: in the 3x3 convolution.
        `keras`: in the 1x1 convolution before it, as the original network and weights converted from Keras
        have it. The tensors have the same names and shapes, so a file of the other variant loads and
        gives worse features: say which one it is.
    stride: of conv1, maxpool, layer2_0, layer3_0, pool4 and layer4_0; the last two have 1 by default.
        `pool4` is a 2x2 max pooling before layer4, left out where it has 1. The plan `bas` is {layer3_0: 1,
        pool4: 2, layer4_0: 1}: maps of stride 8 after layer3 and of 16 at the end.
    """
    import torchvision  # takes seconds, and every config that is read imports this file

    network = torchvision.models.resnet50()
    network.fc = nn.Identity()
    url = torchvision.models.ResNet50_Weights.IMAGENET1K_V1.url
    loaded = weights.load(network, IMAGENET, (lambda: download(url)) if variant == "torchvision" else None)
    layers = {"layer2_0": network.layer2[0], "layer3_0": network.layer3[0], "layer4_0": network.layer4[0]}
    if variant == "keras":
        move_strides_to_1x1(network)
    stages = {
        "conv1": nn.Sequential(network.conv1, network.bn1, network.relu),
        "maxpool": network.maxpool,
        "layer1": network.layer1,
        "layer2_0": network.layer2[0],
        "layer2": network.layer2[1:],
        "layer3_0": network.layer3[0],
        "layer3": network.layer3[1:],
        "pool4": nn.MaxPool2d(2),
        "layer4_0": network.layer4[0],
        "layer4": network.layer4[1:],
    }
    strided = {
        name: [block.conv1 if variant == "keras" else block.conv2, block.downsample[0]]
        for name, block in layers.items()
    }
    strided |= {"conv1": [network.conv1], "maxpool": [network.maxpool], "pool4": [stages["pool4"]]}
    paper = {"pool4": 1, "layer4_0": 1}
    plan = stride_plan(stride, paper, bas={**paper, "layer3_0": 1, "pool4": 2})
    set_strides(strided, plan, stages)
    if plan["pool4"] == 1:
        del stages["pool4"]
    return Backbone(
        stages,
        loaded,
        placements={
            "paper": ("conv1", "maxpool", "layer2_0", "layer3_0", "layer4_0"),
            "original": ("layer3_0", "layer4_0", "layer4"),
            "bas": ("layer3",),
            "spg": ("layer3_0", "layer3"),
        },
        pyramid=("layer2", "layer3", "layer4"),
        gamma=0.9,
        published={"bas": {"alpha": 0.5, "beta": 1.2}},
    )
