"""Drop blocks on maps made by hand: what is hidden, what is not, and who draws."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from wsol.models.drops.adl import ADL
from wsol.models.drops.block import DropBlock
from wsol.models.drops.dgdm import DGDM

# The channel means are 1..9, so that 0.8 times the maximum, 7.2, hides the cells 8 and 9.
GRID = torch.arange(1.0, 10).reshape(1, 1, 3, 3)
X = torch.cat([GRID * 0.5, GRID * 1.5], dim=1)


def blocks(drop_rate: float, gamma: float = 0.8) -> list[DropBlock]:
    return [ADL(drop_rate, gamma), DGDM(drop_rate, gamma)]


@pytest.mark.parametrize("block", blocks(drop_rate=1.0), ids=["adl", "dgdm"])
def test_is_the_identity_at_test(block: DropBlock) -> None:
    assert block.eval()(X) is X


class TestADL:
    def test_hides_the_strongest_cells_of_every_channel(self) -> None:
        y = ADL(drop_rate=1.0, gamma=0.8)(X)
        expected = X.clone()
        expected[:, :, 2, 1:] = 0
        assert torch.equal(y, expected)

    def test_the_threshold_is_strict(self) -> None:
        # gamma max = 9 = the largest: only what is below stays.
        y = ADL(drop_rate=1.0, gamma=1.0)(X)
        assert (y == 0).sum() == 2
        assert (y[:, :, 2, 2] == 0).all()

    def test_each_image_has_its_own_maximum(self) -> None:
        y = ADL(drop_rate=1.0, gamma=0.8)(torch.cat([X, X / 100]))
        assert torch.equal(y[0] == 0, y[1] == 0)

    def test_a_map_that_is_negative_on_average_is_hidden_by_its_positive_part(self) -> None:
        x = torch.full((1, 2, 2, 2), -5.0)
        x[0, 0, 0, 0] = 1.0
        y = ADL(drop_rate=1.0, gamma=0.8)(x)
        assert torch.equal(y == 0, torch.tensor([[True, False], [False, False]]).expand(1, 2, 2, 2))

    def test_strengthens_by_the_sigmoid_of_the_attention(self) -> None:
        assert torch.allclose(ADL(drop_rate=0.0)(X), X * torch.sigmoid(GRID))

    def test_one_draw_for_the_whole_batch(self) -> None:
        adl = ADL(drop_rate=0.5, gamma=0.8)
        adl.seed(0)
        seen = set()
        for _ in range(50):
            hidden = (adl(X.expand(16, 2, 3, 3)) == 0).flatten(1).any(dim=1)
            assert hidden.all() or not hidden.any()
            seen.add(bool(hidden[0]))
        assert seen == {True, False}

    def test_gradient_flows_through_the_strengthening_only(self) -> None:
        x = X.clone().requires_grad_()
        ADL(drop_rate=0.0)(x).sum().backward()
        # By y = x s alone the gradient would be s; the attention adds a positive part to every cell.
        assert x.grad is not None
        assert (x.grad > torch.sigmoid(GRID)).all()
        x = X.clone().requires_grad_()
        ADL(drop_rate=1.0, gamma=0.8)(x).sum().backward()
        assert x.grad is not None
        assert torch.equal(x.grad, (ADL(drop_rate=1.0, gamma=0.8)(X) != 0).float())


class TestDGDM:
    def test_strong_channels_stay_and_weak_ones_drop_at_the_rate(self) -> None:
        x = torch.arange(8.0).reshape(1, 8, 1, 1).add(1).expand(400, 8, 2, 2)
        block = DGDM(drop_rate=0.0, keep=0.5, channel_rate=0.25)
        block.seed(0)
        kept = block.kept_channels(x)[:, :, 0, 0]
        assert kept[:, 4:].all()
        assert kept[:, :4].float().mean().item() == pytest.approx(0.75, abs=0.03)
        # Each image draws for itself.
        assert len(kept.unique(dim=0)) > 1

    def test_keeps_all_or_none_of_the_channels_when_told_to(self) -> None:
        assert DGDM(keep=1.0, channel_rate=1.0).kept_channels(X).all()
        assert not DGDM(keep=0.0, channel_rate=1.0).kept_channels(X).any()

    def test_erases_squares_around_seeds_in_the_strongest_area_only(self) -> None:
        x = torch.zeros(1, 1, 9, 9)
        x[0, 0, 4, 6] = 1.0
        erased = DGDM(gamma=0.8, seed_rate=1.0, block=3).erased_cells(x)
        expected = torch.zeros(1, 1, 9, 9, dtype=torch.bool)
        expected[0, 0, 3:6, 5:8] = True
        assert torch.equal(erased, expected)

    def test_without_seeds_nothing_is_erased(self) -> None:
        assert not DGDM(gamma=0.1, seed_rate=0.0).erased_cells(X).any()

    def test_not_every_strong_cell_is_a_seed(self) -> None:
        block = DGDM(gamma=0.5, seed_rate=0.5, block=1)
        block.seed(0)
        erased = block.erased_cells(torch.ones(50, 3, 8, 8))
        assert erased.float().mean().item() == pytest.approx(0.5, abs=0.03)

    def test_puts_both_parts_together(self) -> None:
        plain = DGDM(drop_rate=1.0, gamma=0.8, keep=1.0, seed_rate=1.0, block=1)(X)
        assert torch.equal(plain, ADL(drop_rate=1.0, gamma=0.8)(X))
        strong = DGDM(drop_rate=0.0, keep=0.5, channel_rate=1.0)(X)
        assert (strong[:, 0] == 0).all()
        assert torch.allclose(strong[:, 1], (X * torch.sigmoid(GRID))[:, 1])


@pytest.mark.parametrize("block", blocks(drop_rate=0.5, gamma=0.3), ids=["adl", "dgdm"])
class TestRandomness:
    def draws(self, block: DropBlock) -> list[Tensor]:
        return [block(X.expand(4, 2, 3, 3)) for _ in range(6)]

    def same(self, a: list[Tensor], b: list[Tensor]) -> bool:
        return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))

    def test_a_seed_repeats_the_draws(self, block: DropBlock) -> None:
        block.seed(3)
        first = self.draws(block)
        block.seed(3)
        assert self.same(first, self.draws(block))
        block.seed(4)
        assert not self.same(first, self.draws(block))

    def test_a_saved_state_continues(self, block: DropBlock) -> None:
        block.seed(3)
        self.draws(block)
        state = block.rng_state()
        then = self.draws(block)
        fresh = copy.deepcopy(block)
        fresh.seed(99)
        fresh.set_rng_state(state)
        assert self.same(then, self.draws(fresh))

    def test_a_copy_draws_the_same_on_its_own(self, block: DropBlock) -> None:
        block.seed(5)
        other = copy.deepcopy(block)
        assert self.same(self.draws(block), self.draws(other))

    def test_neither_touches_the_global_generator_nor_the_checkpoint(self, block: DropBlock) -> None:
        torch.manual_seed(0)
        before = torch.get_rng_state()
        self.draws(block)
        assert torch.equal(before, torch.get_rng_state())
        assert not block.state_dict()


@pytest.mark.parametrize(
    ("block", "options", "message"),
    [
        (ADL, {"drop_rate": 1.2}, "drop_rate must be from 0 to 1, got 1.2"),
        (ADL, {"gamma": -0.1}, "gamma must be from 0 to 1"),
        (DGDM, {"keep": 2.0}, "keep must be from 0 to 1"),
        (DGDM, {"block": 2}, "block must be odd and positive, got 2"),
    ],
)
def test_refuses(block: type[DropBlock], options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        block(**options)
