"""VGG16 for small images."""

from __future__ import annotations

from torch import Tensor, nn

from wsol.models.classifier.opening import Blueprint
from wsol.registry import NETWORKS


@NETWORKS.register("vgg16", "VGG16 with batch norm and one linear layer, for images of 32 px")
def vgg16(classes: int) -> Blueprint:
    return Blueprint(SmallVGG(classes), image_size=32)


class SmallVGG(nn.Module):
    """The 13 convolutions and 5 poolings of VGG16, each convolution with batch norm, GAP, one linear layer.

    Shapes: (N, 3, 32, 32) -> features (N, 512, 1, 1) -> (N, classes).

    Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015.
    Batch norm and the single linear layer are our reading: the GPCA paper prints neither, and without batch
    norm the network does not learn at the paper's rate of 0.1.
    """

    def __init__(self, classes: int) -> None:
        from torchvision.models.vgg import (  # slow to import; reading a config does not need it
            cfgs,
            make_layers,
        )

        super().__init__()
        self.features = make_layers(cfgs["D"], batch_norm=True)
        self.classifier = nn.Linear(512, classes)
        for module in self.features:
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(x).mean(dim=(2, 3)))
        return logits
