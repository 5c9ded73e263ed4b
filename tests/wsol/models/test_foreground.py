"""The foreground head: which stages it reads, its loss against plain sums, its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from wsol.config import Config
from wsol.errors import ConfigError
from wsol.models.heads.foreground import ForegroundHead, masked_mean
from wsol.models.heads.targets import BACKGROUND, FOREGROUND, UNDECIDED
from wsol.models.localizer import Localizer, build_localizer
from wsol.records import LocalizerOutput


def localizer(backbone: Any = "tiny", **options: Any) -> Localizer:
    head = {"name": "foreground", "channels": 8, **options}
    torch.manual_seed(0)
    return build_localizer(
        Config.read({"model": {"backbone": backbone, "weights": "none", "head": head}}).model, 4
    )


@pytest.mark.parametrize(
    ("backbone", "reads"),
    [
        ("mobilenet_v1", ("blocks2", "blocks4")),
        ({"name": "mobilenet_v1", "stride": "bas"}, ("blocks3", "blocks4")),
        ("vgg16", ("conv4_3", "conv5_3")),
        ("resnet50", ("layer2", "layer4")),
    ],
)
def test_reads_the_last_stage_of_each_stride(backbone: Any, reads: tuple[str, ...]) -> None:
    made = localizer(backbone)
    strides = [made.backbone.outline.find(name).stride for name in made.head.reads]
    assert strides == sorted(set(strides))
    assert strides[0] == 8
    if made.backbone.outline.features.keys() >= set(reads):
        assert made.head.reads == reads


def test_one_map_of_the_finest_stride_for_every_class() -> None:
    made = localizer("mobilenet_v1").eval()
    with torch.no_grad():
        output = made(torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8))
        maps = made.maps_for(output, torch.tensor([[0, 3], [2, 1]]))
    assert output.maps.shape == (2, 1, 8, 8)
    assert output.logits.shape == (2, 1)
    assert maps.shape == (2, 2, 8, 8)
    assert torch.equal(maps[:, 0], maps[:, 1])
    assert 0 < output.maps.min() <= output.maps.max() < 1
    assert not made.knows_classes


def test_the_loss_is_the_mean_over_each_kind_of_pixel() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3, 5, 5))
    pixels = rng.choice([BACKGROUND, FOREGROUND, UNDECIDED], size=(3, 5, 5)).astype(np.uint8)
    scores = torch.tensor(z[:, None], dtype=torch.float32)
    output = LocalizerOutput(torch.zeros(3, 1), scores.sigmoid(), {"scores": scores})
    found = localizer().head.loss(output, torch.from_numpy(pixels))
    p = 1 / (1 + np.exp(-z))
    assert found["foreground"].item() == pytest.approx(-np.log(p[pixels == FOREGROUND]).mean() / 2, rel=1e-5)
    assert found["background"].item() == pytest.approx(
        -np.log(1 - p[pixels == BACKGROUND]).mean() / 2, rel=1e-5
    )


def test_undecided_pixels_move_nothing() -> None:
    made = localizer()
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    pixels = torch.full((2, 64, 64), UNDECIDED, dtype=torch.uint8)
    losses = made.loss(made(images), pixels)
    torch.stack(list(losses.values())).sum().backward()
    assert all(loss.item() == 0 for loss in losses.values())
    assert all(p.grad is None or not p.grad.any() for p in made.parameters())


def test_the_gradient_of_the_loss_is_right() -> None:
    mask = torch.rand(2, 4, 4) > 0.5
    values = torch.randn(2, 4, 4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: masked_mean(torch.nn.functional.softplus(x), mask), values)
    assert masked_mean(values, torch.zeros_like(mask)).item() == 0


@pytest.mark.parametrize(
    ("options", "words"), [({"stride": 256}, "no stage of stride 256"), ({"channels": 0}, "at least 1")]
)
def test_what_cannot_be_built_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        localizer(**options)


def test_it_is_a_head() -> None:
    assert isinstance(localizer().head, ForegroundHead)
    with pytest.raises(ConfigError, match="has no classes to weigh"):
        Config.read({"model": {"head": "foreground", "attention": "gpca"}})
    with pytest.raises(ConfigError, match="cam learns from labels"):
        Config.read({"refine": {"source": "runs/a"}})
    refine = {"source": "runs/a", "foreground": 0.2, "background": 0.4}
    with pytest.raises(ConfigError, match="above foreground"):
        Config.read({"model": {"head": "foreground"}, "refine": refine})
    with pytest.raises(ConfigError, match="mixes the labels"):
        Config.read({"model": {"head": "foreground"}, "train": {"transforms": ["cutmix"]}})
