"""SPG's losses against plain NumPy loops, written from their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gpca import Constant
from tests.helpers.plain_maths import Array, array, class_maps, convolve, cross_entropy, sigmoid, stretched
from wsol.models.backbone import Feature, Outline
from wsol.models.heads.spg import SPG, guided_loss
from wsol.records import LocalizerOutput

CLASSES, LABELS, STRIDE = 4, [3, 0], 4
SIDE1, SIDE2, LAST = Feature("one", 3, 2), Feature("two", 5, 4), Feature("last", 6, STRIDE)


def no_tail(stage: str, x: Tensor, *, taps: bool = True, detached: bool = False) -> Tensor:
    raise AssertionError("SPG runs no stage twice")


Three = tuple[float, float, float]
AUTHORS: tuple[Three, Three] = ((0.7, 0.5, 0.7), (0.05, 0.05, 0.1))


def make_head(
    channels: int = 3, sides: str | tuple[str, ...] = "spg", thresholds: tuple[Three, Three] | None = None
) -> SPG:
    torch.manual_seed(1)
    features = {f.name: f for f in (SIDE1, SIDE2, LAST)}
    outline = Outline(features, (LAST,), {"spg": ("one", "two")}, 0.9)
    head = SPG(outline, CLASSES, None, lambda c: Constant(c, 0.25), sides, channels, *(thresholds or ()))
    for parameter in head.parameters():
        nn.init.normal_(parameter, std=1.5 * parameter[0].numel() ** -0.5)
    return head.double()


def features() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(2)
    sizes = {"one": (3, 8, 10), "two": (5, 4, 5), "last": (6, 4, 5)}
    return {
        name: torch.randn(2, *size, generator=generator, dtype=torch.float64) for name, size in sizes.items()
    }


def enlarged(image: Array) -> Array:
    """Bilinear to 16 x 20: pixel centres at (i + 0.5) / size, clipped at the border."""
    h, w = image.shape
    out = np.zeros((16, 20))
    for y, x in np.ndindex(16, 20):
        sy = min(max((y + 0.5) * h / 16 - 0.5, 0), h - 1)
        sx = min(max((x + 0.5) * w / 20 - 0.5, 0), w - 1)
        y0, x0 = min(int(sy), h - 2), min(int(sx), w - 2)
        fy, fx = sy - y0, sx - x0
        top = image[y0, x0] * (1 - fx) + image[y0, x0 + 1] * fx
        bottom = image[y0 + 1, x0] * (1 - fx) + image[y0 + 1, x0 + 1] * fx
        out[y, x] = top * (1 - fy) + bottom * fy
    return out


def plain_guided(logits: list[Array], guides: list[Array], high: float, low: float) -> float:
    losses = []
    for logit, guide in zip(logits, guides, strict=True):
        threshold = high if (guide > high).sum() >= 30 else 0.7 * guide.max()
        for z, g in zip(logit.flat, guide.flat, strict=True):
            if g < low:
                losses.append(math.log(1 + math.exp(z)))
            elif g > threshold:
                losses.append(math.log(1 + math.exp(-z)))
    return sum(losses) / max(len(losses), 1)


def side(x: Array, first: nn.Module, rest: nn.Sequential) -> list[Array]:
    assert isinstance(first, nn.Sequential)
    hidden = np.maximum(convolve(x, first[0]), 0)
    return [enlarged(image[0]) for image in class_maps(hidden, rest)]


@pytest.mark.parametrize(
    ("channels", "thresholds"), [(3, None), (0, None), (3, ((0.41, 0.64, 0.52), (0.35, 0.45, 0.48)))]
)
def test_losses(channels: int, thresholds: tuple[Three, Three] | None) -> None:
    high, low = thresholds or AUTHORS
    head = make_head(channels, thresholds=thresholds)
    read = features()
    output = head(read, torch.tensor(LABELS), no_tail)
    terms = {name: term.item() for name, term in head.loss(output, torch.tensor(LABELS)).items()}

    hidden = array(read["last"])
    for layer in head.hidden:
        hidden = convolve(hidden, layer) if isinstance(layer, nn.Conv2d) else np.maximum(hidden, 0)
    maps = 0.25 * convolve(hidden, head.class_maps[0])
    b1 = side(array(read["one"]), head.first, head.shared)
    b2 = side(array(read["two"]), head.second, head.shared)
    c = [enlarged(image[0]) for image in class_maps(hidden, head.third)]
    true = [stretched(enlarged(maps[i, y])) for i, y in enumerate(LABELS)]
    sure1, sure2 = [sigmoid(b) for b in b1], [sigmoid(b) for b in b2]
    both = [(p + q) / 2 for p, q in zip(sure1, sure2, strict=True)]
    assert terms == pytest.approx(
        {
            "classification": cross_entropy(maps.mean(axis=(2, 3)), LABELS),
            "b2": plain_guided(b2, true, high[0], low[0]),
            "b1": plain_guided(b1, sure2, high[1], low[1]),
            "c": plain_guided(c, both, high[2], low[2]),
        }
    )
    assert all(terms.values())
    np.testing.assert_allclose(array(head.maps_for(output, torch.tensor(LABELS))), maps[[0, 1], LABELS])


@pytest.mark.parametrize(
    ("guide", "expected"),
    [
        (np.full((8, 8), 0.9), math.log(1 + math.exp(-0.5))),  # all foreground
        (np.full((8, 8), 0.0), math.log(1 + math.exp(0.5))),  # all background, though all are above 0.7 max
        (np.full((8, 8), 0.6), math.log(1 + math.exp(-0.5))),  # fewer than 30 above: 0.7 of the maximum
        (np.r_[np.full(40, 0.9), np.full(24, 0.6)].reshape(8, 8), math.log(1 + math.exp(-0.5))),
    ],
)
def test_what_counts(guide: Array, expected: float) -> None:
    logits = torch.full((1, 8, 8), 0.5, dtype=torch.float64, requires_grad=True)
    loss = guided_loss(logits, torch.from_numpy(guide)[None], 0.7, 0.05)
    loss.backward()
    assert loss.item() == pytest.approx(expected)
    ignored = (guide == 0.6) & ((guide == 0.9).sum() >= 30)
    assert logits.grad is not None
    assert ((logits.grad[0] == 0).numpy() == ignored).all()


def test_nothing_decided_is_no_loss() -> None:
    guide = torch.full((1, 8, 8), torch.nan)  # neither above nor below anything
    assert guided_loss(torch.ones(1, 8, 8), guide, 0.7, 0.05) == 0


def test_guides_are_not_taught() -> None:
    head = make_head()
    labels = torch.tensor(LABELS)
    wanted = {
        "b2": ("second.", "shared."),
        "b1": ("first.", "shared."),
        "c": ("third.", "hidden."),
    }
    for term, prefixes in wanted.items():
        head.zero_grad(set_to_none=True)
        head.loss(head(features(), labels, no_tail), labels)[term].backward()
        reached = {name for name, p in head.named_parameters() if p.grad is not None}
        assert reached == {name for name, _ in head.named_parameters() if name.startswith(prefixes)}


def test_mixed_labels_weigh_the_class_maps() -> None:
    head = make_head()
    a, b = torch.tensor([3, 0]), torch.tensor([1, 2])
    output: LocalizerOutput = head(features(), None, no_tail)
    mixed = head.loss(output, [(0.3, a), (0.7, b)])
    for name, term in mixed.items():
        expected = 0.3 * head.loss(output, a)[name] + 0.7 * head.loss(output, b)[name]
        assert term.item() == pytest.approx(expected.item())


def test_no_side_branch_runs_at_test() -> None:
    assert not make_head().eval()(features(), None, no_tail).extras


def test_refuses() -> None:
    with pytest.raises(ValueError, match="sides: no stage 'three'"):
        make_head(sides=("one", "three"))
    with pytest.raises(ValueError, match="sides: needs 2 of the stages, got 1"):
        make_head(sides="one")
    for high, low in (((0.7, 0.5, 1.1), (0, 0, 0)), ((0.7, 0.5, 0.7), (0.1, 0.6, 0.1))):
        with pytest.raises(ValueError, match="low <= high"):
            make_head(thresholds=(high, low))
