"""BAS on every backbone of the registry: its generator's stage, its plan of strides, and another stage."""

from __future__ import annotations

import pytest
import torch

from wsol.config import Backbone, Head, Model
from wsol.errors import ConfigError
from wsol.models.heads.bas import BAS
from wsol.models.localizer import build_localizer
from wsol.registry import BACKBONES

SIDE, CLASSES, LABELS = 64, 3, torch.tensor([2, 0])
NAMES = [name if not name.endswith(":") else f"{name}resnet18" for name in BACKBONES.entries()]
IMAGES = torch.randint(0, 256, (2, 3, SIDE, SIDE), generator=torch.Generator().manual_seed(1)).to(torch.uint8)


def model(backbone: str, **options: object) -> Model:
    plan = {"stride": "bas"} if "stride" in BACKBONES.options(backbone) else {}
    head = Head.of("bas", channels=4, **options)
    return Model(backbone=Backbone.of(backbone, **plan), weights="none", head=head)


@pytest.mark.parametrize("backbone", NAMES)
def test_it_learns_on_every_backbone(backbone: str) -> None:
    torch.manual_seed(0)
    localizer = build_localizer(model(backbone), CLASSES, image_size=SIDE).train()
    head = localizer.head
    assert isinstance(head, BAS)
    stage = localizer.backbone.outline.find(head.reads[1])
    if not backbone.startswith("timm:"):  # timm's networks keep their own strides
        assert stage.stride == 8
        assert localizer.backbone.outline.last.stride <= 16
    before = {name: value.clone() for name, value in localizer.named_buffers()}
    output = localizer(IMAGES, LABELS)
    assert output.extras["generated"].shape[2:] == (SIDE // stage.stride,) * 2
    losses = localizer.loss(output, LABELS)
    torch.stack(list(losses.values())).sum().backward()
    assert all(loss.isfinite() for loss in losses.values())
    assert head.generator.weight.grad is not None
    assert head.generator.weight.grad.any()
    # One pass moved the running statistics, not two: BAS's erased pass leaves none of its own.
    counted = {n: v for n, v in localizer.named_buffers() if n.endswith("num_batches_tracked")}
    assert all(value == before[name] + 1 for name, value in counted.items())


@pytest.mark.parametrize("backbone", NAMES)
def test_its_stage_can_be_chosen(backbone: str) -> None:
    named = list(build_localizer(model(backbone), CLASSES).backbone.outline.features)
    head = build_localizer(model(backbone, generator=named[1]), CLASSES, image_size=SIDE).head
    assert head.reads[1] == named[1]
    with pytest.raises(ConfigError, match=r"generator: no placement or stage 'nowhere'"):
        build_localizer(model(backbone, generator="nowhere"), CLASSES)
