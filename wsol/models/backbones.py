"""The backbones by name. Each function builds a network, loads its weights, and cuts it into stages.

Stages are cut as finely as the placements of drop blocks ask for, and are called after what they end in.
The placement `paper` is the GPCA paper's, after each pooling and strided convolution, judged on the original
network; `original` is ADL's own.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Literal

import torchvision
from torch import nn
from torchvision.models.vgg import cfgs, make_layers

from wsol.models.backbone import Backbone
from wsol.models.timm_network import timm_network, timm_weights
from wsol.models.weights import Normalisation, Weights, download
from wsol.registry import BACKBONES

IMAGENET = Normalisation(
    (0.485, 0.456, 0.406),
    (0.229, 0.224, 0.225),
    "ImageNet's mean and deviation, which all of torchvision's weights expect",
)


@BACKBONES.register("vgg16", "VGG16 without its last pooling (Simonyan and Zisserman, 2015)")
def vgg16(weights: Weights) -> Backbone:
    """Maps of stride 16: five groups of convolutions with a pooling after each but the last."""
    # The classifier has nine tenths of the parameters and is not used, so it is not even made.
    layers = make_layers(cfgs["D"])
    for layer in layers.modules():
        if isinstance(layer, nn.Conv2d) and layer.bias is not None:
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    network = nn.Sequential(OrderedDict(features=layers))
    loaded = weights.load(
        network, IMAGENET, lambda: download(torchvision.models.VGG16_Weights.IMAGENET1K_V1.url)
    )
    return Backbone(
        {
            "pool1": layers[0:5],
            "pool2": layers[5:10],
            "pool3": layers[10:17],
            "pool4": layers[17:24],
            "conv5_3": layers[24:30],
        },
        loaded,
        placements={
            "paper": ("pool1", "pool2", "pool3", "pool4"),
            "original": ("pool3", "pool4", "conv5_3"),
        },
        pyramid=("pool3", "pool4", "conv5_3"),
        gamma=0.8,
    )


@BACKBONES.register("resnet50", "ResNet50 with its last stride removed (He et al., 2016)")
def resnet50(weights: Weights) -> Backbone:
    """Maps of stride 16: layer4 keeps the resolution of layer3, without dilation."""
    network = torchvision.models.resnet50()
    network.fc = nn.Identity()
    loaded = weights.load(
        network, IMAGENET, lambda: download(torchvision.models.ResNet50_Weights.IMAGENET1K_V1.url)
    )
    network.layer4[0].conv2.stride = (1, 1)
    network.layer4[0].downsample[0].stride = (1, 1)
    return Backbone(
        {
            "conv1": nn.Sequential(network.conv1, network.bn1, network.relu),
            "maxpool": network.maxpool,
            "layer1": network.layer1,
            "layer2_0": network.layer2[0],
            "layer2": network.layer2[1:],
            "layer3_0": network.layer3[0],
            "layer3": network.layer3[1:],
            "layer4_0": network.layer4[0],
            "layer4": network.layer4[1:],
        },
        loaded,
        placements={
            "paper": ("conv1", "maxpool", "layer2_0", "layer3_0", "layer4_0"),
            "original": ("layer3_0", "layer4_0", "layer4"),
        },
        pyramid=("layer2", "layer3", "layer4"),
        gamma=0.9,
    )


@BACKBONES.register("mobilenet_v1", "MobileNet V1 with its last stride removed (Howard et al., 2017)")
def mobilenet_v1(weights: Weights, variant: Literal["timm", "tf"] = "timm") -> Backbone:
    """Maps of stride 16: the last strided depthwise convolution gets stride 1.

    variant: `timm` is that library's network and weights. `tf` is the network as TensorFlow trained it, for
    checkpoints converted from there: 'same' padding, which is uneven at stride 2, a BatchNorm epsilon of
    1e-3, and tensors called conv1.{0,1}, blocks.{0..12}.{dw,pw}.{0,1}. Both take pixels from -1 to 1 and
    use ReLU6.

    Our reading: the placement `original`, by analogy with ResNet50's; ADL's authors give none.
    """
    if variant == "tf":
        network = timm_network("mobilenetv1_100", pad_type="same", bn_eps=1e-3)
        reason = "pixels from -1 to 1, as TensorFlow's MobileNets expect (variant tf)"
        loaded = weights.load(
            network,
            Normalisation((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), reason),
            name_in_file=TensorFlowNames(network),
            hint="a checkpoint with timm's names wants model.backbone.variant: timm",
        )
    else:
        network = timm_network("mobilenetv1_100")
        loaded = timm_weights(
            weights, network, hint="a checkpoint converted from TensorFlow wants model.backbone.variant: tf"
        )
    blocks = network.blocks
    blocks[4][0].conv_dw.stride = (1, 1)
    stages = {"stem": nn.Sequential(network.conv_stem, network.bn1), "blocks0": blocks[0]}
    for i in range(1, 5):
        stages |= {f"blocks{i}_0": blocks[i][0], f"blocks{i}": blocks[i][1:]}
    return Backbone(
        stages,
        loaded,
        placements={
            "paper": ("stem", "blocks1_0", "blocks2_0", "blocks3_0", "blocks4_0"),
            "original": ("blocks3_0", "blocks4_0", "blocks4"),
        },
        pyramid=("blocks2", "blocks3", "blocks4"),
        gamma=0.95,
    )


TF_PARTS = {"conv_dw": "dw.0", "bn1": "dw.1", "conv_pw": "pw.0", "bn2": "pw.1"}


class TensorFlowNames:
    """From timm's names of MobileNet V1's tensors to those of checkpoints converted from TensorFlow."""

    def __init__(self, network: nn.Module) -> None:
        pairs = [(i, j) for i, group in enumerate(network.blocks) for j in range(len(group))]  # type: ignore
        self.number = {pair: n for n, pair in enumerate(pairs)}

    def __call__(self, name: str) -> str:
        if found := re.fullmatch(r"blocks\.(\d+)\.(\d+)\.(\w+)\.(\w+)", name):
            group, block, part, tensor = found.groups()
            return f"blocks.{self.number[int(group), int(block)]}.{TF_PARTS[part]}.{tensor}"
        return name.replace("conv_stem.", "conv1.0.").replace("bn1.", "conv1.1.")


@BACKBONES.register("mobilenet_v2", "MobileNet V2 with its last stride removed (Sandler et al., 2018)")
def mobilenet_v2(weights: Weights) -> Backbone:
    """Maps of stride 16: the last strided depthwise convolution gets stride 1. torchvision's network.

    Our reading: all of it; neither paper uses this network. Its bottlenecks end without a ReLU.
    """
    network = torchvision.models.mobilenet_v2()
    network.classifier = nn.Identity()
    loaded = weights.load(
        network, IMAGENET, lambda: download(torchvision.models.MobileNet_V2_Weights.IMAGENET1K_V1.url)
    )
    layers = network.features
    layers[14].conv[1][0].stride = (1, 1)
    return Backbone(
        {
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
        },
        loaded,
        placements={
            "paper": ("stem", "block2", "block4", "block7", "block14"),
            "original": ("block7", "block14", "head"),
        },
        pyramid=("block6", "block13", "head"),
        gamma=0.95,
    )


@BACKBONES.register("tiny", "seven convolutions of our own, for demonstrations and tests on a CPU")
def tiny(weights: Weights) -> Backbone:
    """Maps of stride 8 from 0.1 M parameters: trains from scratch in minutes on two cores.

    Plain 3x3 convolutions with BatchNorm and ReLU: on a CPU depthwise ones save less than they cost. The last
    two are 1x1, which keeps what a cell sees small: a network that learns from scratch puts its evidence
    anywhere in its field of view, and a wide one lays the heat beside the bird.
    """
    network = nn.Sequential(
        OrderedDict(
            stem=_conv(3, 16, stride=2),
            stage1=nn.Sequential(_conv(16, 32, stride=2), _conv(32, 32)),
            stage2=nn.Sequential(_conv(32, 64, stride=2), _conv(64, 64)),
            stage3=nn.Sequential(_conv(64, 128, kernel=1), _conv(128, 128, kernel=1)),
        )
    )
    loaded = weights.load(network, IMAGENET)
    return Backbone(
        dict(network.named_children()),
        loaded,
        placements={"paper": ("stem", "stage1", "stage2"), "original": ("stage2", "stage3")},
        pyramid=("stage1", "stage2", "stage3"),
        gamma=0.9,
    )


def _conv(inputs: int, outputs: int, stride: int = 1, kernel: int = 3) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
