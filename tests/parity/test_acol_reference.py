"""ACoL's losses and maps against plain NumPy loops, written from their formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gpca import Constant
from tests.helpers.plain_maths import Array, array, class_maps, cross_entropy, stretched
from wsol.models.backbone import Feature, Outline
from wsol.models.heads.acol import ACoL

CLASSES, LABELS = 4, [3, 0, 2]
LAST = Feature("last", 5, 16)
X = torch.randn(3, 5, 6, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def no_tail(stage: str, x: Tensor, *, taps: bool = True, detached: bool = False) -> Tensor:
    raise AssertionError("ACoL runs no stage twice")


def make_head(threshold: float = 0.6) -> ACoL:
    torch.manual_seed(1)
    values = iter((0.5, 0.25))  # of the second head's attention, of the first one's
    outline = Outline({"last": LAST}, (LAST,), {}, 0.9)
    head = ACoL(outline, CLASSES, None, lambda c: Constant(c, next(values)), threshold, channels=3)
    for parameter in head.parameters():
        nn.init.normal_(parameter, std=0.4)
    return head.double()


def first_maps(head: ACoL) -> Array:
    return 0.25 * class_maps(array(X), head.class_maps)


def second_maps(head: ACoL, image: int, label: int) -> Array:
    kept = stretched(first_maps(head)[image, label]) < 0.6
    erased = array(X)[image] * kept
    assert 0 < kept.mean() < 1
    return 0.5 * class_maps(erased[None], head.second_maps)[0]


def test_losses() -> None:
    head = make_head()
    terms = head.loss(head({"last": X}, torch.tensor(LABELS), no_tail), torch.tensor(LABELS))
    second = np.stack([second_maps(head, i, y).mean(axis=(1, 2)) for i, y in enumerate(LABELS)])
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(
        {
            "classification": cross_entropy(first_maps(head).mean(axis=(2, 3)), LABELS),
            "second": cross_entropy(second, LABELS),
        }
    )


def test_maps_of_the_classes_that_are_asked_for() -> None:
    head = make_head()
    output = head({"last": X}, None, no_tail)
    asked = torch.tensor([[0, 1], [3, 3], [2, 0]])
    maps = array(head.maps_for(output, asked))
    for i, j in np.ndindex(3, 2):
        label = int(asked[i, j])
        expected = np.maximum(
            stretched(first_maps(head)[i, label]), stretched(second_maps(head, i, label)[label])
        )
        np.testing.assert_allclose(maps[i, j], expected)
    np.testing.assert_allclose(array(head.maps_for(output, asked[:, 1])), maps[:, 1])


def test_the_second_loss_does_not_teach_the_first_head() -> None:
    head = make_head()
    x = X.clone().requires_grad_()
    terms = head.loss(head({"last": x}, torch.tensor(LABELS), no_tail), torch.tensor(LABELS))
    terms["second"].backward()
    reached = {name for name, p in head.named_parameters() if p.grad is not None}
    assert reached == {name for name, _ in head.named_parameters() if name.startswith("second_maps")}
    assert x.grad is not None
    with torch.no_grad():
        maps = select(head, x)
    assert not x.grad.permute(0, 2, 3, 1)[maps >= 0.6].any()  # what is erased gets no gradient


def select(head: ACoL, x: Tensor) -> Tensor:
    maps = head({"last": x}, None, no_tail).maps
    return torch.from_numpy(np.stack([stretched(array(one)) for one in maps[range(3), LABELS]]))


def test_a_constant_map_erases_nothing() -> None:
    head = make_head()
    for parameter in head.class_maps.parameters():
        nn.init.zeros_(parameter)
    output = head({"last": X}, torch.tensor(LABELS), no_tail)
    assert torch.equal(head.second(X, output.maps[:, 0]), head.second_attention(head.second_maps(X)))
    maps = head.maps_for(output, torch.tensor(LABELS))
    assert maps.isfinite().all()
    assert maps.amax() == 1


def test_refuses() -> None:
    with pytest.raises(ValueError, match="threshold must be from 0 to 1"):
        make_head(1.5)
