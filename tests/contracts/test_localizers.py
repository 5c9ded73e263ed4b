"""Every combination of backbone, drop block, head and attention is a localizer that keeps its promises."""

from __future__ import annotations

import copy
import itertools
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from wsol.config import Attention, Backbone, Drop, Head, Model
from wsol.data.hierarchy import Hierarchy
from wsol.models.backbone import Backbone as Stages
from wsol.models.localizer import Localizer, build_localizer
from wsol.models.weights import Weights
from wsol.records import LocalizerOutput
from wsol.registry import BACKBONES

SIZE = 64  # the smallest input that every backbone promises to take
STRIDES = {
    "vgg16": 16,
    "mobilenet_v1": 16,
    "resnet50": 16,
    "mobilenet_v2": 16,
    "tiny": 8,
    "timm:resnet18": 32,
    "timm:mobilenetv2_100": 32,
    "timm:convnext_tiny": 32,
}
DROPS = ("none", "adl", "dgdm")
HEADS = ("cam", "danet")
ATTENTIONS = ("identity", "constant", "se", "srp", "gpca")
PAPER = ("vgg16", "mobilenet_v1", "resnet50")
EXTRA = ("mobilenet_v2", "timm:resnet18", "timm:mobilenetv2_100", "timm:convnext_tiny")
COMBINATIONS = list(itertools.product(STRIDES, DROPS, HEADS, ATTENTIONS))
FINEST_STRIDE = {"tiny": 4}  # of DANet's fused map; 8 for all others

HIERARCHY = Hierarchy.from_table(
    ("species", "family", "order"),
    [(f"species {i}", f"family {i // 2}", f"order {i // 4}") for i in range(64)],
)
CLASSES, FAMILIES, ORDERS = 64, 32, 16
LABELS = torch.tensor([1, 33])
IMAGES = torch.randint(0, 256, (2, 3, SIZE, SIZE), generator=torch.Generator().manual_seed(5)).to(torch.uint8)


@cache
def network(name: str) -> Stages:
    torch.manual_seed(0)
    made: Stages = BACKBONES.get(name)(weights=Weights("none"))
    # Some networks start residual branches at a scale of zero, which hides what is inside from gradients.
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.02 * torch.randn_like(parameter))
    return made


@pytest.fixture(autouse=True)
def _one_network_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making a network costs more than running it: make each once, and build localizers from copies."""

    def copied(name: str, /, **_supplied: Any) -> Stages:
        return copy.deepcopy(network(name))

    monkeypatch.setattr(BACKBONES, "create", copied)


def build(backbone: str, drop: str, head: str, attention: str) -> Localizer:
    torch.manual_seed(0)
    model = Model(
        backbone=Backbone.of(backbone),
        weights="none",
        drop=Drop.of(drop),
        head=Head.of(head, channels=16),
        attention=Attention.of(attention),
    )
    return build_localizer(model, CLASSES, HIERARCHY, image_size=SIZE)


def check_output(output: LocalizerOutput, backbone: str, size: tuple[int, int] = (SIZE, SIZE)) -> None:
    side = [-(-s // STRIDES[backbone]) for s in size]
    assert output.logits.shape == (2, CLASSES)
    assert output.maps.shape == (2, CLASSES, *side)
    assert torch.allclose(output.maps.mean(dim=(2, 3)), output.logits, atol=1e-5)
    assert all(t.isfinite().all() for t in (output.logits, output.maps, *output.extras.values()))


@pytest.mark.parametrize(("backbone", "drop", "head", "attention"), COMBINATIONS)
def test_keeps_its_promises(backbone: str, drop: str, head: str, attention: str) -> None:
    localizer = build(backbone, drop, head, attention)
    localizer.seed(0)

    # Training: finite losses, whose gradients reach every parameter; a drop may hide some in one draw.
    unreached = dict(localizer.named_parameters())
    for _ in range(8):
        output = localizer(IMAGES, LABELS)
        check_output(output, backbone)
        losses = localizer.loss(output, LABELS)
        assert all(loss.ndim == 0 and loss.isfinite() for loss in losses.values())
        torch.stack(list(losses.values())).sum().backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in localizer.parameters())
        unreached = {name: p for name, p in unreached.items() if p.grad is None or not p.grad.any()}
        if not unreached:
            break
    assert not unreached

    # Test: no drop block touches its input, and there is a map for every class.
    localizer.eval()
    with torch.no_grad():
        output = localizer(IMAGES)
        maps = localizer.maps_for(output, LABELS)
    check_output(output, backbone)
    x = torch.rand(2, 3, 4, 4)
    assert tuple(localizer.taps) == localizer.backbone.placements["paper"]
    assert all(tap(x) is x for tap in localizer.taps.values())
    stride = STRIDES[backbone] if head == "cam" else FINEST_STRIDE.get(backbone, 8)
    assert maps.shape == (2, SIZE // stride, SIZE // stride)
    assert maps.isfinite().all()
    labels = [CLASSES] if head == "cam" else [ORDERS, FAMILIES, CLASSES]
    masked = [] if attention == "identity" else [(2, count) for count in labels]
    assert [mask.shape for mask in localizer.masks()] == masked

    # A checkpoint carries everything that the answer depends on, and the answer is always the same.
    other = build(backbone, drop, head, attention).eval()
    other.load_state_dict(localizer.state_dict())
    with torch.no_grad():
        again = other(IMAGES)
    assert torch.equal(again.logits, output.logits)
    assert torch.equal(again.maps, output.maps)


# At test drop blocks hand their input on (checked above), so they do not multiply the graphs to export: each
# backbone, head and attention is exported with one of them in place.
@pytest.mark.parametrize(
    ("backbone", "head", "attention"),
    [
        *itertools.product(PAPER, HEADS, ("identity", "se", "srp", "gpca")),
        *itertools.product(("tiny",), HEADS, ("constant",)),
        *itertools.product(EXTRA, ("cam",), ("gpca",)),
    ],
)
def test_exports_its_eval_graph(backbone: str, head: str, attention: str) -> None:
    localizer = build(backbone, "adl" if head == "cam" else "dgdm", head, attention).eval()
    shapes = {"images": {0: torch.export.Dim("batch", min=1, max=64)}}
    with torch.no_grad():
        program = torch.export.export(localizer, (IMAGES,), dynamic_shapes=shapes)
        images = torch.cat([IMAGES, IMAGES.flip(3)[:1]])
        exported, eager = program.module()(images), localizer(images)
    assert torch.allclose(exported.logits, eager.logits, atol=1e-5)
    assert torch.allclose(exported.maps, eager.maps, atol=1e-5)


@pytest.mark.parametrize("backbone", STRIDES)
@pytest.mark.parametrize("size", [(64, 96), (100, 75)])
def test_takes_any_size(backbone: str, size: tuple[int, int]) -> None:
    localizer = build(backbone, "none", "cam", "identity").eval()
    images: Tensor = torch.rand(2, 3, *size)
    with torch.no_grad():
        output = localizer(images)
    height, width = output.maps.shape[2:]
    for cells, pixels in ((height, size[0]), (width, size[1])):
        assert pixels // STRIDES[backbone] <= cells <= -(-pixels // STRIDES[backbone])


@pytest.mark.parametrize("backbone", PAPER)
def test_the_map_at_224_is_14x14(backbone: str) -> None:
    assert list(network(backbone).shapes(224, 224).values())[-1][1:] == (14, 14)
