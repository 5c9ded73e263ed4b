"""The same maps as pytorch-grad-cam and torchcam give, on torchvision's networks with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from numpy.typing import NDArray
from torch import Tensor, nn

from wsol.models.classifier.localizer import ClassifierLocalizer
from wsol.models.weights import IMAGENET
from wsol.registry import MAP_METHODS

SIDE, CLASSES = 64, 7
LAYERS = {"resnet": "layer3", "mobilenet": "features.13", "vit": "encoder.layers.encoder_layer_1.ln_1"}
THEIRS = {
    "gradcam": "GradCAM",
    "gradcam++": "GradCAMPlusPlus",
    "xgradcam": "XGradCAM",
    "layercam": "LayerCAM",
    "hirescam": "HiResCAM",
    "scorecam": "ScoreCAM",
}


def network(name: str) -> nn.Module:
    torch.manual_seed(0)
    if name == "vit":
        vit = torchvision.models.VisionTransformer(SIDE, 8, 2, 2, 16, 32, num_classes=CLASSES)
        nn.init.normal_(vit.heads.head.weight)  # it begins with zeros
        return vit.eval()
    if name == "mobilenet":
        mobilenet = torchvision.models.mobilenet_v2(num_classes=CLASSES)
        # With its first weights, maps are as small as the numbers that they add against 0 / 0.
        nn.init.normal_(mobilenet.classifier[1].weight, std=100.0)
        return mobilenet.eval()
    return torchvision.models.resnet18(num_classes=CLASSES).eval()


def images() -> Tensor:
    pictures = torch.rand(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    return nn.functional.avg_pool2d(pictures, 9, 1, 4)  # smooth, so that maps are not noise


def ours(model: nn.Module, method: str, layer: str, labels: Tensor) -> NDArray[Any]:
    localizer = ClassifierLocalizer(model, MAP_METHODS.create(method), layer, IMAGENET, SIDE)
    with torch.inference_mode():
        return localizer.maps_for(localizer(images()), labels).numpy()


def normalised() -> Tensor:
    mean, std = (torch.tensor(v).reshape(3, 1, 1) for v in (IMAGENET.mean, IMAGENET.std))
    return (images() - mean) / std


def stretched(maps: NDArray[Any]) -> NDArray[Any]:
    """Each map from 0 to 1."""
    least = maps.min(axis=(1, 2), keepdims=True)
    return (maps - least) / (maps.max(axis=(1, 2), keepdims=True) - least + 1e-7)


def patches(tokens: Tensor) -> Tensor:
    """The reshape that pytorch-grad-cam asks of its users for a ViT."""
    return tokens[:, 1:].reshape(len(tokens), 8, 8, -1).permute(0, 3, 1, 2)


@pytest.mark.parametrize("method", THEIRS)
@pytest.mark.parametrize("name", LAYERS)
def test_as_pytorch_grad_cam(name: str, method: str) -> None:
    theirs = pytest.importorskip("pytorch_grad_cam", reason="needs grad-cam, a test extra")
    from pytorch_grad_cam.utils.image import scale_cam_image
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    model, labels = network(name), torch.tensor([2, 5])
    layer = "layer1" if (name, method) == ("resnet", "scorecam") else LAYERS[name]  # fewer channels
    reshape = patches if name == "vit" else None
    with getattr(theirs, THEIRS[method])(model, [model.get_submodule(layer)], reshape) as cam:
        expected = cam(normalised(), [ClassifierOutputTarget(int(label)) for label in labels])
    # They stretch a map from 0 to 1, resize it, and stretch it once more.
    found = scale_cam_image(scale_cam_image(ours(model, method, layer, labels), (SIDE, SIDE)))
    assert found.max() > 0.99  # not an empty map
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("name", ["resnet", "mobilenet"])
def test_cam_as_torchcam(name: str) -> None:
    methods = pytest.importorskip("torchcam.methods", reason="needs torchcam, a test extra")
    model, labels = network(name), torch.tensor([2, 5])
    layer, head = {"resnet": ("layer4", "fc"), "mobilenet": ("features", "classifier.1")}[name]
    with methods.CAM(model, layer, fc_layer=head) as cam:
        scores = model(normalised())
        expected = cam(labels.tolist(), scores, normalized=False)[0].detach().numpy()
    found = ours(model, "cam", "auto", labels)
    np.testing.assert_allclose(stretched(found), stretched(expected), atol=1e-4)
