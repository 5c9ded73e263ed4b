"""Small classifiers for tests of maps from plain classifiers."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wsol.models.classifier.localizer import ClassifierLocalizer
from wsol.models.weights import IMAGENET
from wsol.registry import MAP_METHODS

SIDE = 32


class SmallNet(nn.Module):
    """Two convolutions with ReLUs that work in place, then global average pooling and one linear layer."""

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.ReLU(inplace=True))
        self.last = nn.Sequential(nn.Conv2d(6, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(8, classes)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.fc(self.drop(self.pool(self.last(self.first(x))).flatten(1)))
        return scores


class WithHiddenLayer(SmallNet):
    """A head that is not linear, so that gradients differ from image to image."""

    def __init__(self, classes: int = 5) -> None:
        super().__init__(classes)
        self.fc = nn.Sequential(nn.Linear(8, 7), nn.Tanh(), nn.Linear(7, classes))  # type: ignore[assignment]


def seeded(make: type[nn.Module], seed: int = 0) -> nn.Module:
    """A new model with the weights of this seed; BatchNorm gets statistics that matter."""
    torch.manual_seed(seed)
    model = make()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0.2, 0.3)
    return model.eval()


def images(number: int = 3, side: int = SIDE, seed: int = 1) -> Tensor:
    """Random images (N, 3, S, S) of uint8."""
    return torch.randint(
        0, 256, (number, 3, side, side), generator=torch.Generator().manual_seed(seed)
    ).byte()


def make(model: nn.Module, method: str, layer: str = "auto") -> ClassifierLocalizer:
    """The localizer of a model for images of 32 pixels."""
    return ClassifierLocalizer(model, MAP_METHODS.create(method), layer, IMAGENET, SIDE)


def maps_of(localizer: ClassifierLocalizer, pictures: Tensor, labels: Tensor) -> NDArray[np.float64]:
    """The maps of these classes, made as photos are looked at: in inference mode."""
    with torch.inference_mode():
        return localizer.maps_for(localizer(pictures), labels).double().numpy()


def small_vit(kind: str) -> nn.Module:
    """A ViT of three blocks with 16 patches. kind: torchvision, timm, or registers: two of
    them, and no class token."""
    torch.manual_seed(0)
    if kind == "torchvision":
        from torchvision.models import VisionTransformer

        vit = VisionTransformer(SIDE, 8, 3, 2, 16, 32, num_classes=5)
        nn.init.normal_(vit.heads.head.weight)  # torchvision begins with zeros
        return vit.eval()
    import timm

    tokens = {"class_token": False, "reg_tokens": 2, "global_pool": "avg"} if kind == "registers" else {}
    size = {"img_size": SIDE, "patch_size": 8, "depth": 3, "embed_dim": 16, "num_heads": 2, "num_classes": 5}
    return timm.create_model("vit_tiny_patch16_224", **size, **tokens).eval()
