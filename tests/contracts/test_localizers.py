"""What every localizer keeps, whatever it is made of: read from the registries, so a new part is covered too.

The full product of drop blocks, heads and attentions runs on the smallest backbone. A plain run of the tests
takes each pair of a head and an attention once, with one of the drop blocks. Every other backbone runs once,
with parts that go round, so that each is used on some of them.
"""

from __future__ import annotations

import copy
import itertools
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

import gpca
from gpca import ChannelAttention, Identity
from wsol.config import Attention, Backbone, Drop, Head, Model, Tap
from wsol.data.hierarchy import Hierarchy
from wsol.models.backbone import Backbone as Stages
from wsol.models.drops.block import DropBlock
from wsol.models.heads.bas import BAS
from wsol.models.heads.fitted import FittedHead
from wsol.models.heads.targets import BACKGROUND, FOREGROUND, UNDECIDED
from wsol.models.localizer import Localizer, build_localizer
from wsol.models.summary import summarise
from wsol.models.weights import Weights
from wsol.records import LocalizerOutput
from wsol.registry import ATTENTIONS, BACKBONES, DROPS, HEADS, TAPS

SIZE = 64  # the smallest input that every backbone promises to take
MEMBERS = {"timm:": ("resnet18", "mobilenetv2_100", "convnext_tiny")}  # examples of a family of backbones
SMALLEST = "tiny"


def backbones() -> list[str]:
    named = [name for name in BACKBONES.entries() if not name.endswith(":")]
    families = [name for name in BACKBONES.entries() if name.endswith(":")]
    return named + [family + member for family in families for member in MEMBERS[family]]


def going_round(first: list[str], *others: list[str]) -> list[tuple[str, ...]]:
    """Each of the first list once, with one of each other list; the longest list is gone through whole."""
    length = max(len(first), *map(len, others))
    columns = [itertools.islice(itertools.cycle(names), length) for names in (first, *others)]
    return list(zip(*columns, strict=True))


FITTED = [name for name in HEADS.entries() if Head.of(name).fitted]
GUIDED = [name for name in HEADS.entries() if Head.of(name).guided]
TRAINED = [name for name in HEADS.entries() if name not in (*FITTED, *GUIDED)]
PARTS = [list(DROPS.entries()), TRAINED, list(ATTENTIONS.entries())]
LARGER = [name for name in backbones() if name != SMALLEST]
PRODUCT = {
    (SMALLEST, *names): sum(part.index(name) for part, name in zip(PARTS, names, strict=True))
    for names in itertools.product(*PARTS)
}
COMBINATIONS = [
    # Of the drop blocks with the same head and attention, one has a sum that their number divides.
    *(
        pytest.param(*row, marks=[] if places % len(PARTS[0]) == 0 else [pytest.mark.long])
        for row, places in PRODUCT.items()
    ),
    *going_round(LARGER, *PARTS),
]
# The graphs of a family's members differ in what is timm's alone: one of them is exported.
EXPORTED = [
    *going_round([SMALLEST], *PARTS),
    *going_round([name for name in LARGER if name.partition(":")[2] in ("", "resnet18")], *PARTS),
]

HIERARCHY = Hierarchy.from_table(
    ("species", "family", "order"),
    [(f"species {i}", f"family {i // 2}", f"order {i // 4}") for i in range(64)],
)
CLASSES = 64  # so many that no bottleneck of an attention shrinks to one unit, which a ReLU may silence
# Biases without a gradient: what they add is the same before a softmax or a batch norm of nlnet and gcnet.
WITHOUT_GRADIENT = (".p.bias", ".z.bias", ".conv_attn.bias")
LABELS = torch.tensor([1, 33])
PAIRS = [(0.25, LABELS), (0.75, LABELS.flip(0))]
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


def build(backbone: str, drop: str, head: str, attention: str, taps: tuple[Tap, ...] = ()) -> Localizer:
    torch.manual_seed(0)
    narrow = {"channels": 16} if "channels" in HEADS.options(head) else {}
    model = Model(
        backbone=Backbone.of(backbone),
        weights="none",
        drop=Drop.of(drop),
        taps=taps,
        head=Head.of(head, **narrow),
        attention=Attention.of(attention),
    )
    localizer = build_localizer(model, CLASSES, HIERARCHY, image_size=SIZE)
    # Some attentions start as the identity, which hides what is inside from gradients.
    with torch.no_grad():
        for module in localizer.modules():
            if isinstance(module, gpca.Attention):
                for parameter in module.parameters():
                    parameter.add_(0.02 * torch.randn_like(parameter))
    return localizer


def tensors(output: LocalizerOutput) -> list[Tensor]:
    return [output.logits, output.maps, *(t for t in output.extras.values() if isinstance(t, Tensor))]


def check_output(localizer: Localizer, output: LocalizerOutput) -> None:
    assert output.logits.shape == (2, CLASSES)
    side = -(-SIZE // localizer.backbone.outline.last.stride)
    assert output.maps.shape == (2, CLASSES, side, side)
    assert all(t.isfinite().all() for t in tensors(output))


def check_training(localizer: Localizer) -> None:
    """Finite losses, whose gradients reach every parameter; a drop may hide some of them in one draw."""
    localizer.seed(0)
    unreached = {n: p for n, p in localizer.named_parameters() if not n.endswith(WITHOUT_GRADIENT)}
    for _ in range(8):
        output = localizer(IMAGES, LABELS)
        check_output(localizer, output)
        losses = localizer.loss(output, LABELS)
        assert all(loss.ndim == 0 and loss.isfinite() for loss in losses.values())
        torch.stack(list(losses.values())).sum().backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in localizer.parameters())
        unreached = {name: p for name, p in unreached.items() if p.grad is None or not p.grad.any()}
        if not unreached:
            break
    assert not unreached
    if not localizer.head.needs_labels:
        mixed = localizer.loss(localizer(IMAGES), PAIRS)
        assert set(mixed) == set(losses)
        assert all(loss.ndim == 0 and loss.isfinite() for loss in mixed.values())


@pytest.mark.parametrize(("backbone", "drop", "head", "attention"), COMBINATIONS)
def test_keeps_its_promises(backbone: str, drop: str, head: str, attention: str) -> None:
    localizer = build(backbone, drop, head, attention)
    check_training(localizer)

    # Test: no drop block touches its input, and there is a map for every class that is asked for.
    localizer.eval()
    with torch.no_grad():
        output = localizer(IMAGES)
        maps = localizer.maps_for(output, LABELS)
        several = localizer.maps_for(output, torch.stack([LABELS.flip(0), LABELS], dim=1))
    check_output(localizer, output)
    blocks = [module for module in localizer.taps.values() if isinstance(module, DropBlock)]
    x = torch.rand(2, 3, 4, 4)
    assert all(block(x) is x for block in blocks)
    assert maps.ndim == 3
    assert maps.isfinite().all()
    assert several.shape == (2, 2, *maps.shape[1:])
    assert torch.equal(several[:, 1], maps)
    kept = [m for m in localizer.head.modules() if isinstance(m, ChannelAttention)]
    assert [mask.shape for mask in localizer.masks()] == [
        (2, module.channels) for module in kept if not isinstance(module, Identity)
    ]

    # A checkpoint carries everything that the answer depends on, and the answer is always the same.
    other = build(backbone, drop, head, attention).eval()
    other.load_state_dict(localizer.state_dict())
    with torch.no_grad():
        again = other(IMAGES)
    assert torch.equal(again.logits, output.logits)
    assert torch.equal(again.maps, output.maps)
    assert summarise(localizer, SIZE).parameters == sum(p.numel() for p in localizer.parameters())


@pytest.mark.parametrize("drop", DROPS.entries())
@pytest.mark.parametrize("head", GUIDED)
def test_a_guided_head_keeps_its_promises(head: str, drop: str) -> None:
    check_guided(build(SMALLEST, drop, head, "identity"))


@pytest.mark.parametrize("backbone", LARGER)
@pytest.mark.parametrize("head", GUIDED)
@pytest.mark.long
def test_a_guided_head_works_on_every_backbone(head: str, backbone: str) -> None:
    check_guided(build(backbone, "none", head, "identity"))


def check_guided(localizer: Localizer) -> None:
    """It learns from the labels of pixels, with gradients to every weight; one map, and no classes."""
    localizer.seed(0)
    pixels = torch.tensor([BACKGROUND, FOREGROUND, UNDECIDED], dtype=torch.uint8)
    targets = pixels[torch.randint(0, 3, (2, SIZE, SIZE), generator=torch.Generator().manual_seed(1))]
    read = {name for name, _ in localizer.named_parameters()}
    for _ in range(8):  # a drop may hide some of them in one draw
        losses = localizer.loss(localizer(IMAGES, targets), targets)
        assert all(loss.ndim == 0 and loss.isfinite() for loss in losses.values())
        torch.stack(list(losses.values())).sum().backward()
        read -= {name for name, p in localizer.named_parameters() if p.grad is not None and p.grad.any()}
    assert not read
    assert not localizer.knows_classes
    assert localizer.cut is None
    localizer.eval()
    with torch.no_grad():
        output = localizer(IMAGES)
        maps = localizer.maps_for(output, torch.stack([LABELS.flip(0), LABELS], dim=1))
    assert output.logits.shape == (2, 1)
    assert maps.shape == (2, 2, *output.maps.shape[2:])
    assert torch.equal(maps[:, 0], maps[:, 1])
    assert maps.isfinite().all()


@pytest.mark.parametrize("backbone", backbones())
@pytest.mark.parametrize("head", FITTED)
@pytest.mark.long
def test_a_fitted_head_keeps_its_promises(backbone: str, head: str) -> None:
    """One map and no classes; everything that it has fitted is in its checkpoint."""
    localizer, other = (build(backbone, "none", head, "identity").eval() for _ in range(2))
    fitted = localizer.head
    assert isinstance(fitted, FittedHead)
    assert not fitted.knows_classes
    with torch.no_grad():
        features = localizer.backbone(localizer.normalise(IMAGES), None, fitted.reads)
    figures = fitted.fit([features])
    assert all(0 <= share <= 1 for share in figures.values())
    with torch.no_grad():
        output = localizer(IMAGES)
        maps = localizer.maps_for(output, torch.stack([LABELS.flip(0), LABELS], dim=1))
    assert output.logits.shape == (2, 1)
    assert localizer.loss(output, LABELS) == {}
    assert maps.shape == (2, 2, *output.maps.shape[2:])
    assert torch.equal(maps[:, 0], maps[:, 1])
    assert maps.isfinite().all()
    assert maps.any()
    other.load_state_dict(localizer.state_dict())
    with torch.no_grad():
        assert torch.equal(other(IMAGES).maps, output.maps)


@pytest.mark.parametrize(
    ("backbone", "drop", "head", "attention"),
    [*going_round([SMALLEST], *PARTS), *going_round(LARGER, *PARTS)],
)
def test_frozen_stages_stay_as_they_are(backbone: str, drop: str, head: str, attention: str) -> None:
    localizer = build(backbone, drop, head, attention)
    before = {name: value.clone() for name, value in localizer.state_dict().items()}
    localizer.backbone.freeze(list(localizer.backbone.outline.features)[1])
    localizer.train()
    localizer.seed(0)
    output = localizer(IMAGES, LABELS)
    torch.stack(list(localizer.loss(output, LABELS).values())).sum().backward()
    after = localizer.state_dict()
    layers = [layer for step in localizer.backbone.frozen for layer in localizer.backbone.layers(step)]
    held = {id(t) for layer in layers for t in (*layer.parameters(), *layer.buffers())}
    assert held
    for name, value in (*localizer.named_parameters(), *localizer.named_buffers()):
        if id(value) in held:
            assert torch.equal(after[name], before[name])
            assert value.grad is None
            assert not value.requires_grad
    # The drop block may hide a batch from some parameters, but never from all that still learn.
    assert any(p.grad is not None and p.grad.any() for p in localizer.backbone.parameters())


@pytest.mark.parametrize("tap", TAPS.entries())
def test_every_drop_block_and_attention_works_at_a_tap(tap: str) -> None:
    localizer = build(SMALLEST, "none", "cam", "identity", (Tap.of(tap, after=("stage1", "stage3")),))
    check_training(localizer)
    other = build(SMALLEST, "none", "cam", "identity", (Tap.of(tap, after=("stage1", "stage3")),))
    other.load_state_dict(localizer.state_dict())
    with torch.no_grad():
        assert torch.equal(other.eval()(IMAGES).logits, localizer.eval()(IMAGES).logits)
    assert summarise(localizer, SIZE).parameters == sum(p.numel() for p in localizer.parameters())


@pytest.mark.parametrize(
    ("backbone", "drop", "head", "attention"),
    # Tracing a large network takes seconds: a plain run of the tests does it for the smallest one.
    [pytest.param(*row, marks=[] if row[0] == SMALLEST else [pytest.mark.long]) for row in EXPORTED],
)
@pytest.mark.long
def test_exports_its_eval_graph(backbone: str, drop: str, head: str, attention: str) -> None:
    localizer = build(backbone, drop, head, attention).eval()
    shapes = {"images": {0: torch.export.Dim("batch", min=1, max=64)}}
    with torch.no_grad():
        program = torch.export.export(localizer, (IMAGES,), dynamic_shapes=shapes)
        images = torch.cat([IMAGES, IMAGES.flip(3)[:1]])
        exported, eager = program.module()(images), localizer(images)
    assert torch.allclose(exported.logits, eager.logits, atol=1e-5)
    assert torch.allclose(exported.maps, eager.maps, atol=1e-5)


@pytest.mark.parametrize("backbone", backbones())
@pytest.mark.parametrize("size", [(64, 96), (100, 75)])
def test_takes_any_size(backbone: str, size: tuple[int, int]) -> None:
    localizer = build(backbone, "none", "cam", "identity").eval()
    stride = localizer.backbone.outline.last.stride
    with torch.no_grad():
        output = localizer(torch.rand(2, 3, *size))
    for cells, pixels in zip(output.maps.shape[2:], size, strict=True):
        assert pixels // stride <= cells <= -(-pixels // stride)


@pytest.mark.parametrize(
    ("backbone", "generator", "alpha", "beta"),
    [("vgg16", "conv4_3", 0.0, 0.7), ("mobilenet_v1", "blocks3", 0.5, 1.5), ("resnet50", "layer3", 0.5, 1.2)],
)
def test_bas_takes_the_values_of_its_authors(
    backbone: str, generator: str, alpha: float, beta: float
) -> None:
    head = build(backbone, "none", "bas", "identity").head
    assert isinstance(head, BAS)
    assert (head.reads[1], head.alpha, head.beta) == (generator, alpha, beta)


@pytest.mark.parametrize("backbone", ["vgg16", "mobilenet_v1", "resnet50"])
def test_the_map_at_224_is_14x14(backbone: str) -> None:
    assert list(network(backbone).shapes(224, 224).values())[-1][1:] == (14, 14)
