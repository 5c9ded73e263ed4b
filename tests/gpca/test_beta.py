"""The beta distribution and its approximations against scipy and the published moments."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from gpca.beta import (
    APPROXIMATIONS,
    Beta,
    Concrete,
    Density,
    Gaussian,
    Laplace,
    SigmoidGaussian,
    beta_from_logit_moments,
    expected_sigmoid,
    kl_divergence,
    logit_moments,
)

# a, b, mu, s2, KL(p||q) for Sigmoid-Gaussian, Gaussian, Laplace and concrete
TABLE = [
    (0.5, 0.5, 0, 9.869604, 0.032644, 0.620782, 0.821657, 0.003348),
    (2, 2, 0, 1.289868, 0.004635, 0.046165, 0.159654, 0.002072),
    (2, 5, -1.083333, 0.866257, 0.015016, 0.069131, 0.148720, 0.013015),
    (5, 1, 2.083333, 1.866257, 0.057011, 0.268381, 0.316799, 0.039600),
    (10, 3, 1.328968, 0.500100, 0.012649, 0.052696, 0.117153, 0.014415),
]
PAIRS = [row[:2] for row in TABLE]


@pytest.mark.parametrize(("a", "b", "mu", "s2", "kl_s", "kl_g", "kl_l", "kl_c"), TABLE)
def test_table_of_moments_and_divergences(
    a: float, b: float, mu: float, s2: float, kl_s: float, kl_g: float, kl_l: float, kl_c: float
) -> None:
    beta = Beta(a, b)
    assert [value.item() for value in logit_moments(a, b)] == pytest.approx([mu, s2], abs=5e-7)
    divergences = [kl_divergence(beta, q(beta)) for q in (SigmoidGaussian, Gaussian, Laplace, Concrete)]
    assert divergences == pytest.approx([kl_s, kl_g, kl_l, kl_c], abs=5.1e-7)


def scipy_density(q: Density, a: float, b: float) -> tuple[stats.rv_continuous, bool]:
    """The same distribution from scipy, and whether it is one of logit(v)."""
    mu, s2 = (value.item() for value in logit_moments(a, b))
    mean, variance = stats.beta.stats(a, b)
    return {
        Beta: (stats.beta(a, b), False),
        SigmoidGaussian: (stats.norm(mu, math.sqrt(s2)), True),
        Concrete: (stats.logistic(mu, math.sqrt(3 * s2) / math.pi), True),
        Gaussian: (stats.norm(mean, math.sqrt(variance)), False),
        Laplace: (stats.laplace(mean, math.sqrt(variance / 2)), False),
    }[type(q)]


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("kind", [Beta, *APPROXIMATIONS])
def test_densities_equal_scipys(kind: type, a: float, b: float) -> None:
    q = Beta(a, b) if kind is Beta else kind(Beta(a, b))
    v = np.linspace(0.001, 0.999, 101)
    reference, in_logit_space = scipy_density(q, a, b)
    expected = (
        reference.logpdf(np.log(v / (1 - v))) - np.log(v * (1 - v)) if in_logit_space else reference.logpdf(v)
    )
    np.testing.assert_allclose(q.log_prob(torch.tensor(v)), expected, rtol=1e-10, atol=1e-10)


def test_densities_outside_the_unit_interval() -> None:
    outside = torch.tensor([-0.5, 0.0, 1.0, 2.0])
    beta = Beta(2, 3)
    for bounded in (beta, SigmoidGaussian(beta), Concrete(beta)):
        assert (bounded.log_prob(outside) == -torch.inf).all()
    for unbounded in (Gaussian(beta), Laplace(beta)):
        assert unbounded.log_prob(outside).isfinite().all()


def kl_by_scipy(p: Density, q: Density, a: float, b: float) -> float:
    """KL(p||q) by adaptive quadrature over the logit, from scipy's densities."""
    (p_reference, p_logit), (q_reference, q_logit) = scipy_density(p, a, b), scipy_density(q, a, b)

    def log_density(reference: stats.rv_continuous, in_logit_space: bool, u: float) -> float:
        if in_logit_space:
            return reference.logpdf(u)
        log_v, log_rest = -np.logaddexp(0, -u), -np.logaddexp(0, u)
        if reference.dist.name == "beta":
            return a * log_v + b * log_rest - (math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))
        return reference.logpdf(np.exp(log_v)) + log_v + log_rest

    def integrand(u: float) -> float:
        log_p = log_density(p_reference, p_logit, u)
        return math.exp(log_p) * (log_p - log_density(q_reference, q_logit, u))

    middle = math.log(a / b)
    return sum(
        integrate.quad(integrand, *ends, epsabs=1e-11, epsrel=1e-11, limit=500)[0]
        for ends in ((-150, middle - 10), (middle - 10, middle), (middle, middle + 10), (middle + 10, 150))
    )


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("kind", APPROXIMATIONS)
def test_divergence_equals_adaptive_quadrature(kind: type, a: float, b: float) -> None:
    beta = Beta(a, b)
    q = kind(beta)
    assert kl_divergence(beta, q) == pytest.approx(kl_by_scipy(beta, q, a, b), abs=1e-9)
    if kind in (SigmoidGaussian, Concrete):
        assert kl_divergence(q, beta) == pytest.approx(kl_by_scipy(q, beta, a, b), abs=1e-9)
    else:  # it has mass outside (0, 1)
        assert kl_divergence(q, beta) == math.inf


@pytest.mark.parametrize(
    ("a", "b"), [(1e-2, 3), (3, 1e-3), (1e-2, 1e3), (1e4, 2e4), (0.05, 0.05), (1e5, 1e2)]
)
def test_divergence_at_extremes_equals_its_closed_form(a: float, b: float) -> None:
    """KL(beta || Sigmoid-Gaussian) = ln sqrt(2 pi e s2) + E ln v(1-v) - H(beta)."""
    beta = Beta(a, b)
    log_slope = special.psi(a) + special.psi(b) - 2 * special.psi(a + b)
    s2 = special.polygamma(1, a) + special.polygamma(1, b)
    expected = 0.5 * math.log(2 * math.pi * math.e * s2) + log_slope - stats.beta(a, b).entropy()
    assert kl_divergence(beta, SigmoidGaussian(beta)) == pytest.approx(expected, abs=1e-8)


def test_a_distribution_does_not_diverge_from_itself() -> None:
    beta = Beta(3, 4)
    assert kl_divergence(beta, Beta(3, 4)) == 0
    with pytest.raises(ValueError, match=r"p must be a distribution on \(0, 1\)"):
        kl_divergence(Gaussian(beta), Laplace(beta))


positive = st.floats(-6, 9).map(math.exp)


@given(a=positive, b=positive)
@settings(deadline=None, max_examples=200)
def test_moments_there_and_back(a: float, b: float) -> None:
    again = beta_from_logit_moments(*logit_moments(a, b))
    # With both small, mu is a difference of large numbers: (a, b) is known less well than (mu, s2).
    assert [value.item() for value in again] == pytest.approx([a, b], rel=1e-6)


@given(mu=st.floats(-200, 200), s2=st.floats(-10, 10).map(math.exp))
@settings(deadline=None, max_examples=200)
def test_moments_back_and_there(mu: float, s2: float) -> None:
    got_mu, got_s2 = logit_moments(*beta_from_logit_moments(mu, s2))
    assert got_mu.item() == pytest.approx(mu, abs=1e-9 * max(1, abs(mu)))
    assert got_s2.item() == pytest.approx(s2, rel=1e-9)


def test_moments_of_many_at_once() -> None:
    a, b = torch.rand(2, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 9 + 0.1
    got_a, got_b = beta_from_logit_moments(*logit_moments(a, b))
    torch.testing.assert_close(got_a, a, rtol=1e-8, atol=0)
    torch.testing.assert_close(got_b, b, rtol=1e-8, atol=0)


@pytest.mark.parametrize(("a", "b", "named"), [(0, 1, "a"), (1, -1, "b"), (math.nan, 1, "a")])
def test_parameters_must_be_positive(a: float, b: float, named: str) -> None:
    for build in (Beta, logit_moments):
        with pytest.raises(ValueError, match=f"^{named} must be positive"):
            build(a, b)


def test_variance_must_be_positive_and_mean_a_number() -> None:
    with pytest.raises(ValueError, match="s2 must be positive"):
        beta_from_logit_moments(0.0, 0.0)
    with pytest.raises(ArithmeticError, match="mu = nan"):
        beta_from_logit_moments(math.nan, 1.0)


@pytest.mark.parametrize("mean", [-4.0, -1.0, 0.0, 0.5, 3.0])
@pytest.mark.parametrize("variance", [0.0, 0.3, 1.0, 5.0])
def test_expected_sigmoid_is_near_the_expectation(mean: float, variance: float) -> None:
    def integrand(u: float) -> float:
        return stats.norm.pdf(u, mean, math.sqrt(variance)) / (1 + math.exp(-u))

    expected = (
        integrate.quad(integrand, mean - 40, mean + 40, points=[mean])[0]
        if variance
        else 1 / (1 + math.exp(-mean))
    )
    got = expected_sigmoid(torch.tensor(mean), torch.tensor(variance)).item()
    assert got == pytest.approx(expected, abs=1e-6 if variance == 0 or mean == 0 else 0.02)
