"""The closed form against the C separate solves, its gradient, and what happens at its limits."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from gpca import GPCA
from gpca.posterior import JITTER, factor_, gram, leave_one_out

WELL_CONDITIONED = ["random", "smooth"]
NEARLY_SINGULAR = ["dead", "duplicate", "zero", "1x1"]


def learned(channels: int, **options: object) -> GPCA:
    return GPCA(channels, **options).double()  # type: ignore[arg-type]


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("kind", WELL_CONDITIONED + NEARLY_SINGULAR)
def test_posterior_equals_the_separate_solves(
    kind: str, reduction: str, maps: Callable[..., Tensor], separate_solves: Callable
) -> None:
    x = maps(kind)
    tolerance = 1e-11 if kind in WELL_CONDITIONED else 1e-7
    module = learned(40, reduction=reduction)
    module(x)
    posterior = module.posterior(x, weights=True)
    assert module.mask is not None
    assert posterior.a is not None
    for n, image in enumerate(x.flatten(2).numpy()):
        expected = separate_solves(image, mean=reduction == "mean")
        np.testing.assert_allclose(module.mask[n], expected.mask, rtol=0, atol=tolerance)
        np.testing.assert_allclose(posterior.A[n].detach(), expected.A, rtol=0, atol=10 * tolerance)
        np.testing.assert_allclose(posterior.B[n].detach(), expected.B, rtol=0, atol=10 * tolerance)
        np.testing.assert_allclose(posterior.a[n], expected.a, rtol=0, atol=100 * tolerance)


def test_posterior_at_the_size_of_cub(maps: Callable[..., Tensor], separate_solves: Callable) -> None:
    x = maps("smooth", channels=200, batch=1)
    module = learned(200)
    module(x)
    assert module.mask is not None
    np.testing.assert_allclose(
        module.mask[0], separate_solves(x[0].flatten(1).numpy()).mask, rtol=0, atol=1e-11
    )


def test_condition_number_of_1e10(separate_solves: Callable) -> None:
    x = torch.full((1, 30, 3, 3), 5.0, dtype=torch.float64)
    x[:, :20] += 1e-4 * torch.randn(
        1, 20, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )
    K = gram(x.flatten(2), torch.ones(4, dtype=torch.float64)) + torch.eye(30, dtype=torch.float64) / 1e6
    assert 3e9 < np.linalg.cond(K[0].numpy()) < 3e10
    module = learned(30)
    module(x)
    assert module.mask is not None
    np.testing.assert_allclose(
        module.mask[0], separate_solves(x[0].flatten(1).numpy()).mask, rtol=0, atol=1e-7
    )


def test_hand_gradient_equals_autograd_through_the_cholesky(maps: Callable[..., Tensor]) -> None:
    x = maps("smooth", channels=30).flatten(2).requires_grad_()
    theta = torch.tensor([0.7, 0.3, 1.3, 0.9], dtype=torch.float64, requires_grad=True)
    delta = 1e3
    toward_A = torch.randn(2, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    toward_B = torch.randn(2, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

    M = gram(x, theta) + torch.eye(30, dtype=torch.float64) / delta
    P = torch.cholesky_inverse(torch.linalg.cholesky(M))
    w = 1 / P.diagonal(dim1=-2, dim2=-1)
    A = (1 - (P @ w[..., None]).squeeze(-1)) / 29
    expected = torch.autograd.grad((A * toward_A + (w - 1 / delta) * toward_B).sum(), (x, theta))

    A, B = leave_one_out(x, theta, delta, mean=True)
    actual = torch.autograd.grad((A * toward_A + B * toward_B).sum(), (x, theta))
    for got, wanted in zip(actual, expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("by", ["x", "theta", "upstream"])
def test_second_derivative_is_refused(by: str, maps: Callable[..., Tensor]) -> None:
    inputs = {
        "x": maps("random", channels=5).flatten(2).requires_grad_(),
        "theta": torch.ones(4, dtype=torch.float64, requires_grad=True),
        "upstream": torch.ones(2, 5, dtype=torch.float64, requires_grad=True),
    }
    A, _ = leave_one_out(inputs["x"], inputs["theta"], 1e6, mean=True)
    gradients = torch.autograd.grad(
        (A * inputs["upstream"]).sum(), (inputs["x"], inputs["theta"]), create_graph=True
    )
    for gradient in gradients:
        with pytest.raises(RuntimeError, match="no second derivative"):
            torch.autograd.grad(gradient.sum(), inputs[by], retain_graph=True)


def test_second_derivative_of_local_is_right() -> None:
    module = learned(5, variant="local")
    x = torch.randn(1, 5, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    assert torch.autograd.gradgradcheck(module, x.requires_grad_())


def test_factor_adds_jitter_only_where_it_is_needed() -> None:
    good = torch.eye(6, dtype=torch.float64)
    # Rank one and so large that 1/delta drowns in rounding.
    singular = torch.full((6, 6), 1e12, dtype=torch.float64) * (1 + 1e-16)
    singular[0, 0] -= 1e-3
    L, noise = factor_(torch.stack((good, singular)), delta=1e6)
    assert noise[0] == 1e-6
    assert 1e-6 < noise[1] <= 1e-6 + sum(JITTER) * 1e12
    M = torch.stack((good, singular)) + noise[:, None, None] * torch.eye(6, dtype=torch.float64)
    torch.testing.assert_close(L @ L.mT, M, rtol=1e-12, atol=0)


def test_factor_gives_nan_beyond_the_bound_and_for_nan() -> None:
    good = torch.eye(3, dtype=torch.float64)
    indefinite = torch.tensor([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]], dtype=torch.float64)
    unknown = good.clone()
    unknown[2, 1] = unknown[1, 2] = torch.nan
    L, _ = factor_(torch.stack((good, indefinite, unknown)), delta=1e6)
    assert L[0].isfinite().all()
    assert L[1].isnan().all()
    assert L[2].isnan().all()


def test_jitter_belongs_to_the_variance(maps: Callable[..., Tensor], separate_solves: Callable) -> None:
    """Where a sample needs more noise, A and B are those of a process with that noise."""
    x = maps("duplicate", batch=1) * 3e3
    K = gram(x.flatten(2), torch.ones(4, dtype=torch.float64))
    _, noise = factor_(K, delta=1e12)
    assert noise > 1e-12
    A, B = leave_one_out(x.flatten(2), torch.ones(4, dtype=torch.float64), 1e12, mean=True)
    expected = separate_solves(x[0].flatten(1).numpy(), delta=1 / noise.item())
    # The system is singular but for the noise: what it determines well is compared.
    independent = slice(12, 28)
    np.testing.assert_allclose(B[0, independent].numpy(), expected.B[independent], rtol=1e-3)
    assert A.isfinite().all()


def test_memory_saved_for_backward_is_two_square_matrices() -> None:
    x = torch.randn(4, 50, 36, requires_grad=True)
    sizes: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        sizes.append(tensor.numel() * tensor.element_size())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        A, B = leave_one_out(x, torch.ones(4, dtype=torch.float64), 1e6, mean=True)
    square = 4 * 50 * 50 * 8
    assert sum(sizes) < 2.2 * square + x.numel() * x.element_size()
    assert A.requires_grad
    assert B.requires_grad
