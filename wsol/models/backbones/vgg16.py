"""VGG16."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from wsol.models.backbone import Backbone
from wsol.models.strides import StridePlan, set_strides, stride_plan
from wsol.models.weights import IMAGENET, Weights, download
from wsol.registry import BACKBONES

CUTS = {"conv1_2": ("pool1", 4), "conv2_2": ("pool2", 4), "conv3_3": ("pool3", 6), "conv4_3": ("pool4", 6)}


@BACKBONES.register("vgg16", "VGG16 without its last pooling (Simonyan and Zisserman, 2015)")
def vgg16(weights: Weights, stride: StridePlan = "paper") -> Backbone:
    """Maps of stride 16: five groups of convolutions with a pooling after each but the last.

    stride: of the poolings, e.g. {pool4: 1}. `pool5` has 1 by default, which means that it is left out. The
    plan `bas` is the same: conv4_3 has maps of stride 8 already.

    `conv1_2`, `conv2_2`, `conv3_3` and `conv4_3` are the points before `pool1` to `pool4`.
    """
    import torchvision  # takes seconds, and every config that is read imports this file
    from torchvision.models.vgg import cfgs, make_layers

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
    stages = {
        "pool1": layers[0:5],
        "pool2": layers[5:10],
        "pool3": layers[10:17],
        "pool4": layers[17:24],
        "conv5_3": layers[24:30],
        "pool5": layers[30:31],
    }
    plan = stride_plan(stride, paper={"pool5": 1})
    set_strides({name: [stages[name][-1]] for name in stages if name.startswith("pool")}, plan, stages)
    if plan["pool5"] == 1:
        del stages["pool5"]
    return Backbone(
        stages,
        loaded,
        placements={
            "paper": ("pool1", "pool2", "pool3", "pool4"),
            "original": ("pool3", "pool4", "conv5_3"),
            "bas": ("conv4_3",),
            "spg": ("conv4_3", "conv5_3"),
        },
        pyramid=("pool3", "pool4", list(stages)[-1]),
        gamma=0.8,
        published={"bas": {"alpha": 0.0, "beta": 0.7}},
        cuts=CUTS,
    )
