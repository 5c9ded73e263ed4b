"""What must hold for every input."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor

from gpca import GPCA

feature_maps = st.tuples(st.integers(1, 3), st.integers(2, 9), st.integers(1, 3), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-100, 100, allow_subnormal=False))
)
variants = st.sampled_from(["full", "fixed", "no-prior", "local", "mha"])


def mask_of(x: Tensor, **options: Any) -> Tensor:
    module = GPCA(x.shape[1], **options)
    module(x)
    assert module.mask is not None
    return module.mask


@given(feature_maps, variants, st.sampled_from(["mean", "sum"]), st.booleans())
@settings(deadline=None, max_examples=150)
def test_mask_lies_in_the_unit_interval_and_gradients_are_finite(
    values: np.ndarray, variant: str, reduction: str, normalize: bool
) -> None:
    x = torch.tensor(values, requires_grad=True)
    module = GPCA(x.shape[1], variant, reduction=reduction, normalize=normalize)  # type: ignore[arg-type]
    module(x).sum().backward()
    assert module.mask is not None
    assert ((module.mask >= 0) & (module.mask <= 1)).all()
    assert x.grad is not None
    assert x.grad.isfinite().all()


@given(feature_maps, variants)
@settings(deadline=None, max_examples=60)
def test_images_of_a_batch_do_not_influence_each_other(values: np.ndarray, variant: str) -> None:
    x = torch.tensor(values)
    alone = torch.cat([mask_of(image[None], variant=variant) for image in x])
    # Near a singular system the order of additions in a larger batch moves the last digits.
    torch.testing.assert_close(mask_of(x, variant=variant), alone, rtol=0, atol=1e-5)


def random_maps(seed: int, channels: int) -> Tensor:
    return torch.randn(2, channels, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@given(st.integers(0, 10**6), st.integers(2, 12), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_full_follows_a_permutation_of_the_channels(seed: int, channels: int, random: Any) -> None:
    x = random_maps(seed, channels)
    order = list(range(channels))
    random.shuffle(order)
    torch.testing.assert_close(mask_of(x[:, order]), mask_of(x)[:, order], rtol=0, atol=1e-10)


@given(st.integers(0, 10**6), st.integers(2, 12), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_the_places_of_a_map_have_no_order(seed: int, channels: int, random: Any) -> None:
    x = random_maps(seed, channels).flatten(2)
    order = list(range(x.shape[2]))
    random.shuffle(order)
    shuffled = x[:, :, order].unflatten(2, (2, 6))
    torch.testing.assert_close(mask_of(shuffled), mask_of(x.unflatten(2, (3, 4))), rtol=0, atol=1e-10)


@given(st.integers(0, 10**6), st.integers(3, 12))
@settings(deadline=None, max_examples=40)
def test_channels_that_are_equal_get_equal_masks(seed: int, channels: int) -> None:
    x = random_maps(seed, channels)
    x[:, 0] = x[:, -1]
    mask = mask_of(x, reduction="sum")
    torch.testing.assert_close(mask[:, 0], mask[:, -1], rtol=0, atol=1e-7)


@pytest.mark.parametrize("variant", ["full", "local", "mha"])
def test_training_moves_theta_and_keeps_it_positive(variant: Any) -> None:
    module = GPCA(12, variant)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    x = random_maps(0, 12)
    losses = []
    for _ in range(20):
        loss = (module(x) - 0.6 * x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert (module.theta > 0).all()
