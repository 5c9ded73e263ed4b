"""MobileNet V1."""

from __future__ import annotations

import re
from typing import Literal

from torch import nn

from wsol.models.backbone import Backbone
from wsol.models.strides import StridePlan, set_strides, stride_plan
from wsol.models.timm_network import timm_network, timm_weights
from wsol.models.weights import Normalisation, Weights
from wsol.registry import BACKBONES


@BACKBONES.register("mobilenet_v1", "MobileNet V1 with its last stride removed (Howard et al., 2017)")
def mobilenet_v1(
    weights: Weights, variant: Literal["timm", "tf"] = "timm", stride: StridePlan = "paper"
) -> Backbone:
    """Maps of stride 16: the last strided depthwise convolution gets stride 1.

    variant: `timm` is that library's network and weights. `tf` is the network as TensorFlow trained it, for
    checkpoints converted from there: 'same' padding, which is uneven at stride 2, a BatchNorm epsilon of
    1e-3, and tensors called conv1.{0,1}, blocks.{0..12}.{dw,pw}.{0,1}. Both take pixels from -1 to 1 and
    use ReLU6.

    stride: of stem, blocks1_0, blocks2_0, blocks3_0 and blocks4_0, which has 1 by default. The plan `bas` is
    {blocks3_0: 1, blocks4_0: 2}: maps of stride 8 after blocks3, the eleventh of the thirteen blocks.

    Our reading: the placements `original` and `spg`, by analogy with ResNet50's; their authors give none.
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
    stages = {"stem": nn.Sequential(network.conv_stem, network.bn1), "blocks0": blocks[0]}
    strided = {"stem": [network.conv_stem]}
    for i in range(1, 5):
        stages |= {f"blocks{i}_0": blocks[i][0], f"blocks{i}": blocks[i][1:]}
        strided[f"blocks{i}_0"] = [blocks[i][0].conv_dw]
    plan = stride_plan(stride, paper={"blocks4_0": 1}, bas={"blocks3_0": 1, "blocks4_0": 2})
    set_strides(strided, plan, stages)
    return Backbone(
        stages,
        loaded,
        placements={
            "paper": ("stem", "blocks1_0", "blocks2_0", "blocks3_0", "blocks4_0"),
            "original": ("blocks3_0", "blocks4_0", "blocks4"),
            "bas": ("blocks3",),
            "spg": ("blocks3_0", "blocks3"),
        },
        pyramid=("blocks2", "blocks3", "blocks4"),
        gamma=0.95,
        published={"bas": {"alpha": 0.5, "beta": 1.5}},
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
