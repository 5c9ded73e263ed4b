"""ADL against plain NumPy, written from its equations: both branches, and the gradients of both."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wsol.models.drops.adl import ADL


def attention_reference(x: np.ndarray) -> np.ndarray:
    n, c, h, w = x.shape
    out = np.zeros((n, h, w))
    for i in range(n):
        for y in range(h):
            for z in range(w):
                out[i, y, z] = sum(max(x[i, k, y, z], 0.0) for k in range(c)) / c
    return out


def dropped_reference(x: np.ndarray, gamma: float) -> np.ndarray:
    attention = attention_reference(x)
    out = x.copy()
    for i in range(len(x)):
        threshold = gamma * attention[i].max()
        out[i][:, ~(attention[i] < threshold)] = 0
    return out


def strengthened_reference(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-attention_reference(x)))[:, None]


def strengthened_gradient(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """d/dx of sum(g * y): s g_c + relu'(x_c) s (1 - s) / C * sum_c' g_c' x_c'."""
    s = 1 / (1 + np.exp(-attention_reference(x)))[:, None]
    through = s * (1 - s) / x.shape[1] * (g * x).sum(axis=1, keepdims=True)
    return s * g + (x > 0) * through


shapes = st.tuples(*(st.integers(1, n) for n in (3, 5, 6, 6)))


@settings(max_examples=40, deadline=None)
@given(shape=shapes, gamma=st.floats(0, 1), seed=st.integers(0, 10**6), rectified=st.booleans())
def test_both_branches_and_their_gradients(
    shape: tuple[int, int, int, int], gamma: float, seed: int, rectified: bool
) -> None:
    rng = np.random.default_rng(seed)
    values, weights = rng.normal(size=shape), rng.normal(size=shape)
    if rectified:
        values = values.clip(0)
    for rate, expected in ((1.0, dropped_reference(values, gamma)), (0.0, strengthened_reference(values))):
        x = torch.tensor(values, requires_grad=True)
        y = ADL(drop_rate=rate, gamma=gamma).train()(x)
        np.testing.assert_allclose(y.detach().numpy(), expected, rtol=0, atol=1e-12)
        (y * torch.tensor(weights)).sum().backward()
        assert x.grad is not None
        if rate == 0:
            gradient = strengthened_gradient(values, weights)
        else:
            # Zero exactly where it was dropped, the weight itself elsewhere: no gradient through the mask.
            attention = attention_reference(values)
            kept = attention < gamma * attention.max(axis=(1, 2), keepdims=True)
            gradient = weights * kept[:, None]
        np.testing.assert_allclose(x.grad.numpy(), gradient, rtol=0, atol=1e-12)


def test_gradcheck() -> None:
    x = torch.randn(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ADL(drop_rate=0.0), (x,))


def test_the_share_of_drops_is_the_rate() -> None:
    adl = ADL(drop_rate=0.75)
    adl.seed(1)
    x = torch.ones(1, 1, 1, 2) * torch.tensor([1.0, 2.0])
    dropped = sum(adl(x)[0, 0, 0, 1].item() == 0 for _ in range(2000))
    assert dropped / 2000 == pytest.approx(0.75, abs=0.05)
