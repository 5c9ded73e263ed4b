"""Real ImageNet weights on real birds: the features know species, and the input is what they were trained on.

Needs weights and images that are not published here; skips where they are absent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import normalize

from wsol.models.backbone import Backbone
from wsol.models.backbones.mobilenet_v1 import TensorFlowNames
from wsol.models.timm_network import timm_network
from wsol.models.weights import IMAGENET, Normalisation, Weights
from wsol.registry import BACKBONES

pytestmark = pytest.mark.long

V1 = "mobilenet_v1_imagenet.pth"
PER_CLASS, NUM_CLASSES = 8, 8


@pytest.fixture(scope="module")
def birds(shared: Path) -> Callable[[str, int], Tensor]:
    """split ('1' training, '0' test), side -> (classes, images, 3, side, side) bytes of a few classes."""
    root = shared / "cub40" / "CUB_200_2011"
    names = dict(line.split() for line in (root / "images.txt").read_text().splitlines())
    splits = dict(line.split() for line in (root / "train_test_split.txt").read_text().splitlines())
    classes = sorted({name.split("/")[0] for name in names.values()})[:NUM_CLASSES]

    def read(split: str, side: int) -> Tensor:
        images = [
            [name for i, name in names.items() if splits[i] == split and name.startswith(f"{c}/")][:PER_CLASS]
            for c in classes
        ]
        opened = [
            [np.array(Image.open(root / "images" / n).convert("RGB").resize((side, side))) for n in of_class]
            for of_class in images
        ]
        return torch.from_numpy(np.array(opened)).permute(0, 1, 4, 2, 3)

    return read


@torch.no_grad()
def nearest_mean_accuracy(backbone: Backbone, birds: Callable[[str, int], Tensor]) -> float:
    """How many test images lie nearest to the mean feature of their own class."""
    expected = backbone.weights_report.normalisation
    mean, std = (torch.tensor(v).reshape(3, 1, 1) for v in (expected.mean, expected.std))
    backbone.eval()

    def features(images: Tensor) -> Tensor:
        x = (images.flatten(0, 1) / 255 - mean) / std
        x = backbone(x, reads=(backbone.outline.last.name,))[backbone.outline.last.name]
        return normalize(x.mean(dim=(2, 3)), dim=1).unflatten(0, images.shape[:2])

    train, test = features(birds("1", 80)), features(birds("0", 80))
    centre = train.mean(dim=(0, 1))
    means = normalize((train - centre).mean(dim=1), dim=1)
    nearest = ((test - centre) @ means.T).argmax(dim=2)
    return (nearest == torch.arange(NUM_CLASSES)[:, None]).float().mean().item()


@pytest.mark.parametrize(
    ("name", "file", "options"),
    [
        pytest.param("vgg16", "vgg16_features_imagenet_fp16.pth", {}, marks=pytest.mark.long),
        ("mobilenet_v2", "mobilenet_v2_imagenet.pth", {}),
        ("mobilenet_v1", V1, {"variant": "tf"}),
        pytest.param(
            *("resnet50", "resnet50_imagenet_fp16.safetensors", {"variant": "keras"}), marks=pytest.mark.long
        ),
    ],
)
def test_features_tell_species_apart(
    shared: Path,
    birds: Callable[[str, int], Tensor],
    name: str,
    file: str,
    options: dict[str, Any],
) -> None:
    torch.manual_seed(0)
    source = Weights(str(shared / "weights" / file))
    trained = BACKBONES.create(name, weights=source, **options)
    random = BACKBONES.create(name, weights=Weights("none"), **options)
    assert trained.weights_report.missing == ()
    assert nearest_mean_accuracy(trained, birds) > nearest_mean_accuracy(random, birds) + 0.2


@pytest.mark.long
def test_resnet50_of_keras_strides_where_the_file_was_trained(
    shared: Path, birds: Callable[[str, int], Tensor]
) -> None:
    source = Weights(str(shared / "weights" / "resnet50_imagenet_fp16.safetensors"))
    right, wrong = (
        nearest_mean_accuracy(BACKBONES.create("resnet50", weights=source, variant=variant), birds)
        for variant in ("keras", "torchvision")
    )
    assert right > wrong


def statistics_gap(network: Any, x: Tensor) -> float:
    """How far the inputs of the BatchNorms are from what they saw in training: means and variances."""
    gaps: list[float] = []

    def compare(norm: nn.Module, inputs: tuple[Tensor], _output: Tensor) -> None:
        (features,) = inputs
        assert isinstance(norm, nn.BatchNorm2d)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        variance = norm.running_var + 1e-3
        means = (features.mean(dim=(0, 2, 3)) - norm.running_mean).abs() / variance.sqrt()
        variances = ((features.var(dim=(0, 2, 3)) + 1e-3) / variance).log().abs()
        gaps.append((means + variances).mean().item())

    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.register_forward_hook(compare)
    with torch.no_grad():
        network.eval().forward_features(x)
    return sum(gaps) / len(gaps)


@pytest.mark.long
def test_mobilenet_v1_is_the_network_that_the_file_was_trained_in(
    shared: Path, birds: Callable[[str, int], Tensor]
) -> None:
    """Any other normalisation, padding, or activation moves the features away from the BatchNorms'."""
    images = birds("1", 224)[:, :2].flatten(0, 1) / 255

    def gap(expected: Normalisation, **options: Any) -> float:
        network = timm_network("mobilenetv1_100", **options)
        source = Weights(str(shared / "weights" / V1))
        source.load(network, expected, name_in_file=TensorFlowNames(network))
        mean, std = (torch.tensor(v).reshape(3, 1, 1) for v in (expected.mean, expected.std))
        return statistics_gap(network, (images - mean) / std)

    ours = BACKBONES.create("mobilenet_v1", weights=Weights("none"), variant="tf")
    right = ours.weights_report.normalisation
    as_built = {"pad_type": "same", "bn_eps": 1e-3}
    best = gap(right, **as_built)
    assert best < 0.95 * gap(IMAGENET, **as_built)
    assert best < 0.95 * gap(right, bn_eps=1e-3)
    assert best < 0.95 * gap(right, act_layer="relu", **as_built)
    assert best < gap(right, pad_type="same")
