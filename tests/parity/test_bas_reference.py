"""BAS against plain NumPy loops, written from its formulas; and what each of its terms teaches."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpca import Constant
from tests.helpers.plain_maths import Array, array, class_maps, convolve, cross_entropy, sigmoid
from wsol.config import Attention, Backbone, Drop, Head, Model
from wsol.errors import ConfigError
from wsol.models.backbone import Feature, Outline
from wsol.models.heads.bas import BAS
from wsol.models.localizer import Localizer, build_localizer

CLASSES, LABELS = 5, [3, 0, 4]
MIDDLE, LAST = Feature("middle", 4, 8), Feature("last", 6, 16)
MIXING = torch.rand(6, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def plain_tail(x: Array) -> Array:
    """2x2 means, then other channels."""
    n, c, h, w = x.shape
    return np.einsum("oc,nchw->nohw", MIXING.numpy(), x.reshape(n, c, h // 2, 2, w // 2, 2).mean(axis=(3, 5)))


def tail(stage: str, x: Tensor, *, taps: bool = True, detached: bool = False) -> Tensor:
    assert (stage, taps, detached) == ("middle", False, True)
    return torch.einsum("oc,nchw->nohw", MIXING, F.avg_pool2d(x, 2))


def make_head(published: dict[str, dict[str, float]] | None = None, **options: object) -> BAS:
    torch.manual_seed(1)
    outline = Outline(
        {f.name: f for f in (MIDDLE, LAST)}, (LAST,), {"bas": ("middle",)}, 0.9, published or {}
    )
    head = BAS(outline, CLASSES, None, lambda c: Constant(c, 0.25), channels=3, **options)  # type: ignore
    for parameter in head.parameters():  # biases too
        nn.init.normal_(parameter, std=0.4)
    return head.double()


@pytest.mark.parametrize(
    ("as_published", "steady", "sharpness"),
    [(False, False, 0), (True, False, 0), (False, True, 0), (False, True, 2), (False, False, 0.5)],
)
def test_losses_and_maps(as_published: bool, steady: bool, sharpness: float) -> None:
    head = make_head(as_published=as_published, steady=steady, sharpness=sharpness, alpha=0.4, beta=1.3)
    x = torch.randn(3, 4, 8, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    end = torch.einsum("oc,nchw->nohw", MIXING, F.avg_pool2d(x, 2))
    output = head({"middle": x, "last": end}, torch.tensor(LABELS), tail)
    terms = {name: term.item() for name, term in head.loss(output, torch.tensor(LABELS)).items()}

    def attended(features: Array) -> Array:
        maps = 0.25 * class_maps(features, head.class_maps)
        return np.maximum(maps, 0) if as_published else maps

    def pooled(one_map: Array) -> float:
        if not sharpness:
            return float(one_map.mean())
        return math.log(np.mean(np.exp(sharpness * one_map))) / sharpness

    generated = sigmoid(convolve(array(x), head.generator))
    maps = attended(plain_tail(array(x)))
    logits = np.array([[pooled(one) for one in of_image] for of_image in maps])
    ratios, inside = [], np.zeros_like(logits)
    for i, label in enumerate(LABELS):
        m = generated[i, label]
        erased = attended(plain_tail(array(x)[i : i + 1] * (1 - m)))
        whole, left = max(logits[i, label], 0), max(pooled(erased[0, label]), 0)
        ratio = left / (whole + 1e-8)
        ratios.append((0 if left >= whole else ratio) if as_published else min(ratio, 1))
        inside[i] = [pooled(one * m.reshape(4, 2, 3, 2).mean(axis=(1, 3))) for one in maps[i]]
    area = np.mean([generated[i, label].mean() for i, label in enumerate(LABELS)])
    expected = {
        "classification": cross_entropy(logits, LABELS),
        "foreground": 0.4 * cross_entropy(inside, LABELS),
        "background": np.mean(ratios),
        "area": 1.3 * area,
    }
    assert terms == pytest.approx(expected)
    assert 0 < expected["background"] < 1
    np.testing.assert_allclose(array(output.maps), maps)
    np.testing.assert_allclose(array(output.logits), logits)
    asked = torch.tensor([[1, 3], [0, 0], [4, 2]])
    found = array(head.maps_for(output, asked))
    for i, j in np.ndindex(3, 2):
        np.testing.assert_allclose(found[i, j], generated[i, asked[i, j]])


def test_the_ratio() -> None:
    """Left outside / the whole: clamped at 1, where the published rule has 0 from 1 on."""
    left = torch.tensor([0.5, 2.0, 3.0, -1.0, 1.0, -1.0])
    whole = torch.tensor([2.0, 2.0, 2.0, 2.0, -1.0, -1.0])
    assert make_head().ratio(left, whole).tolist() == pytest.approx([0.25, 1, 1, 0, 1, 0])
    assert make_head(as_published=True).ratio(left, whole).tolist() == pytest.approx([0.25, 0, 0, 0, 0, 0])
    assert make_head(steady=True).ratio(left, whole).tolist() == pytest.approx([0.25, 1, 1, 0, 1, 0])
    for steady in (False, True):
        half = make_head(steady=steady).ratio(left.half(), whole.half())
        assert half.tolist() == pytest.approx([0.25, 1, 1, 0, 1, 0])


@pytest.mark.parametrize(("steady", "above"), [(False, 0.0), (True, 1 / 3)])
def test_a_steady_ratio_has_a_gradient_where_more_is_left_than_the_whole(steady: bool, above: float) -> None:
    left = torch.tensor([0.5, 3.0, -1.0], requires_grad=True)
    make_head(steady=steady).ratio(left, torch.full((3,), 2.0)).sum().backward()
    assert left.grad is not None
    assert left.grad.tolist() == pytest.approx([1 / 2, above, 0])


def test_sharp_scores_lie_between_the_mean_and_the_maximum() -> None:
    maps = torch.randn(2, CLASSES, 4, 3, dtype=torch.float64) * 3
    mean, largest = maps.mean(dim=(2, 3)), maps.amax(dim=(2, 3))
    torch.testing.assert_close(make_head(sharpness=1e-6).pool(maps), mean, rtol=0, atol=1e-4)
    torch.testing.assert_close(make_head(sharpness=1e4).pool(maps), largest, rtol=0, atol=1e-3)
    between = make_head(sharpness=1.0).pool(maps)
    assert ((mean < between) & (between < largest)).all()


def test_the_whole_is_no_target_of_the_ratio() -> None:
    left, whole = torch.tensor([0.5], requires_grad=True), torch.tensor([2.0], requires_grad=True)
    make_head().ratio(left, whole).sum().backward()
    assert left.grad is not None
    assert left.grad.item() == pytest.approx(0.5)
    assert whole.grad is None


@pytest.mark.parametrize(
    ("start", "ramp", "epoch", "expected"),
    [
        (0, 0, 0, 1),
        (2, 0, 1.99, 0),
        (2, 0, 2, 1),
        (2, 2, 2, 0),
        (2, 2, 2.5, 0.25),
        (2, 2, 4, 1),
        (2, 2, math.inf, 1),
    ],
)
def test_the_terms_begin_late(start: float, ramp: float, epoch: float, expected: float) -> None:
    head = make_head(start=start, ramp=ramp, alpha=1, beta=1)
    head.epoch = epoch
    assert head.weight() == expected
    x = torch.rand(3, 4, 8, 6, dtype=torch.float64)
    output = head(
        {"middle": x, "last": tail("middle", x, taps=False, detached=True)}, torch.tensor(LABELS), tail
    )
    now = head.loss(output, torch.tensor(LABELS))
    head.epoch = math.inf
    whole = head.loss(output, torch.tensor(LABELS))
    assert now.pop("classification") == whole.pop("classification")
    for name, term in now.items():
        assert term.item() == pytest.approx(expected * whole[name].item())


def test_alpha_and_beta_are_the_authors_unless_set() -> None:
    assert (make_head().alpha, make_head().beta) == (0.5, 1.2)
    published = {"bas": {"alpha": 0.0, "beta": 0.7}}
    assert (make_head(published).alpha, make_head(published).beta) == (0.0, 0.7)
    assert (make_head(published, alpha=0.3).alpha, make_head(published, beta=2.0).beta) == (0.3, 2.0)


def build(drop: str = "none", attention: str = "gpca", **options: object) -> Localizer:
    torch.manual_seed(0)
    model = Model(
        backbone=Backbone.of("tiny"),
        weights="none",
        drop=Drop.of(drop),
        head=Head.of("bas", channels=8, **options),
        attention=Attention.of(attention),
    )
    return build_localizer(model, CLASSES)


IMAGES = torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(0))
TRUE = torch.tensor([0, 3, 1, 4])


def reached(localizer: Localizer, term: Tensor) -> set[str]:
    names, parameters = zip(*localizer.named_parameters(), strict=True)
    found = torch.autograd.grad(term, parameters, retain_graph=True, allow_unused=True)
    return {name for name, g in zip(names, found, strict=True) if g is not None and g.any()}


@pytest.mark.parametrize("stage", ["stage1", "stage3"])
def test_what_each_term_teaches(stage: str) -> None:
    localizer = build(generator=stage)
    localizer.seed(0)
    output = localizer(IMAGES, TRUE)
    terms = localizer.loss(output, TRUE)
    everything = {name for name, _ in localizer.named_parameters()}
    generator = {"head.generator.weight", "head.generator.bias"}
    stages = ("stem", "stage1") if stage == "stage1" else ("stem", "stage1", "stage2", "stage3")
    below = {name for name in everything if name.startswith(tuple(f"backbone.stages.{s}." for s in stages))}
    assert reached(localizer, terms["classification"]) == everything - generator
    assert reached(localizer, terms["foreground"]) == everything
    assert reached(localizer, terms["background"]) <= generator | below
    # The score itself, since the ratio has no gradient where it is cut off at 1.
    assert reached(localizer, output.extras["background"].sum()) == generator | below
    assert reached(localizer, terms["area"]) == generator | below


def test_the_erased_branch_is_the_frozen_network_on_the_erased_features() -> None:
    """Against a copy whose weights need no gradient, in training: its own batch statistics, all of them."""
    localizer = build(drop="dgdm", generator="stage1")
    frozen = copy.deepcopy(localizer).requires_grad_(False)
    localizer.seed(0)
    features: dict[str, Tensor] = {}
    localizer.head.register_forward_pre_hook(lambda _module, inputs: features.update(inputs[0]))
    output = localizer(IMAGES, TRUE)
    before = {name: buffer.clone() for name, buffer in frozen.named_buffers()}

    x = features["stage1"].detach()
    weight = localizer.head.get_parameter("generator.weight")
    bias = localizer.head.get_parameter("generator.bias")
    m = F.conv2d(x, weight, bias, padding=1).sigmoid()[range(4), TRUE][:, None]
    rest = x * (1 - m)
    for name in ("stage2", "stage3"):  # no drop block
        rest = frozen.backbone.stages[name](rest)
    maps = frozen.head.get_submodule("class_maps")(rest)
    left = frozen.head.get_submodule("attention")(maps).mean(dim=(2, 3))[range(4), TRUE]
    torch.testing.assert_close(output.extras["background"], left)
    ours = torch.autograd.grad(output.extras["background"].sum(), weight, retain_graph=True)[0]
    theirs = torch.autograd.grad(left.sum(), weight)[0]
    torch.testing.assert_close(ours, theirs)
    assert ours.any()
    after = dict(frozen.named_buffers())
    assert any(not torch.equal(after[name], buffer) for name, buffer in before.items())


def test_the_erased_branch_leaves_no_trace() -> None:
    with_labels, without = build(drop="dgdm", attention="gpca"), build(drop="dgdm", attention="gpca")
    for localizer, labels in ((with_labels, TRUE), (without, None)):
        localizer.seed(0)
        localizer(IMAGES, labels)
    for (name, a), b in zip(with_labels.named_buffers(), without.buffers(), strict=True):
        assert torch.equal(a, b), name
    for (_, one), (_, other) in zip(with_labels.random_modules(), without.random_modules(), strict=True):
        assert torch.equal(one.rng_state(), other.rng_state())
    assert torch.equal(with_labels.masks()[0], without.masks()[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"generator": "stage9"}, "bas: generator: no placement or stage 'stage9'; did you mean 'stage"),
        ({"generator": "paper"}, r"generator: needs 1 of the stages, got 3 \(stem, stage1, stage2\)"),
        ({"alpha": -1.0}, "alpha must be at least 0"),
        ({"ramp": -0.5}, "ramp must be at least 0"),
        ({"sharpness": -1.0}, "sharpness must be at least 0"),
        ({"as_published": True, "steady": True}, "two rules for the same ratio"),
    ],
)
def test_refuses(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(**options)  # type: ignore[arg-type]


def test_mixed_labels_are_refused() -> None:
    localizer = build()
    with pytest.raises(ValueError, match="one label for each image"):
        localizer.loss(localizer(IMAGES, TRUE), [(1.0, TRUE)])
