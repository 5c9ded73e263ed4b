"""The beta distribution of a mask value v in (0, 1), and what stands in for it.

A mask value is thought of as beta distributed. A beta variable cannot be trained by gradients in closed form,
so the paper takes v = sigmoid(u) with u ~ N(mu, s2) instead, matched in logit space:

    mu = psi(a) - psi(b)          s2 = psi1(a) + psi1(b)

with the digamma psi and the trigamma psi1. This module has that map in both directions, the
densities of the beta and of four approximations, and the Kullback-Leibler divergences between them.
Everything is float64.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus


def expected_sigmoid(mean: Tensor, variance: Tensor) -> Tensor:
    """E[sigmoid(u)] for u ~ N(mean, variance), by the probit approximation.

    sigmoid(mean / sqrt(1 + pi/8 variance)), exact for variance 0 and for mean 0.
    """
    return torch.sigmoid(mean / torch.sqrt(1 + math.pi / 8 * variance))


def logit_moments(a: Tensor | float, b: Tensor | float) -> tuple[Tensor, Tensor]:
    """(a, b) -> (mu, s2): mean and variance of logit(v) for v ~ Beta(a, b).

    Raises:
        ValueError: a or b is not positive.
    """
    a, b = _positive("a", a), _positive("b", b)
    mu = torch.special.digamma(a) - torch.special.digamma(b)
    s2 = torch.special.polygamma(1, a) + torch.special.polygamma(1, b)
    return mu, s2


def beta_from_logit_moments(mu: Tensor | float, s2: Tensor | float) -> tuple[Tensor, Tensor]:
    """(mu, s2) -> (a, b), the inverse of `logit_moments`, by Newton's method in (ln a, ln b).

    There is one solution for every mu and every s2 > 0.

    Raises:
        ValueError: s2 is not positive.
        ArithmeticError: no convergence, for moments beyond what float64 can express.
    """
    target, variance = torch.broadcast_tensors(torch.as_tensor(mu, dtype=torch.float64), _positive("s2", s2))
    sigma = variance.sqrt()
    # Start: for large a and b, 1/a + 1/b = s2 and ln(a/b) = mu; for small ones 1/a^2 + 1/b^2 = s2, and a
    # small one of the two explains up to sigma of mu.
    excess = (sigma - 1).clamp_min(0)
    ln_a = torch.maximum(softplus(target - excess) - 2 * sigma.log(), -sigma.log())
    ln_b = torch.maximum(softplus(-target - excess) - 2 * sigma.log(), -sigma.log())
    for _ in range(100):
        a, b = ln_a.exp(), ln_b.exp()
        trigamma_a, trigamma_b = torch.special.polygamma(1, a), torch.special.polygamma(1, b)
        total = trigamma_a + trigamma_b
        # Residuals f and g without a unit, and their derivatives by ln a and ln b.
        f = (torch.special.digamma(a) - torch.special.digamma(b) - target) / sigma
        g = (total / variance).log()
        if torch.maximum(f.abs(), g.abs()).max() < 1e-11:
            return a, b
        f_a, f_b = a * trigamma_a / sigma, -b * trigamma_b / sigma
        g_a = a * torch.special.polygamma(2, a) / total
        g_b = b * torch.special.polygamma(2, b) / total
        determinant = f_a * g_b - f_b * g_a
        ln_a = ln_a - ((g_b * f - f_b * g) / determinant).clamp(-8, 8)
        ln_b = ln_b - ((f_a * g - g_a * f) / determinant).clamp(-8, 8)
    raise ArithmeticError(f"no a, b found for mu = {mu}, s2 = {s2}")


class Density(ABC):
    """A distribution of v; `symbol` is its name in the figure, `centre` the logit of its middle."""

    symbol: ClassVar[str]
    centre: float

    @abstractmethod
    def log_prob(self, v: Tensor) -> Tensor:
        """ln p(v) for v of any shape."""

    @abstractmethod
    def logit_log_prob(self, u: Tensor) -> Tensor:
        """ln of p(v) |dv/du| at v = sigmoid(u): precise also where v rounds to 0 or 1."""


class OnUnitInterval(Density):
    """A distribution on (0, 1), given by the density of u = logit(v); -inf outside."""

    def log_prob(self, v: Tensor) -> Tensor:
        v = torch.as_tensor(v, dtype=torch.float64)
        u = torch.logit(v)
        inside = (v > 0) & (v < 1)
        return torch.where(inside, self.logit_log_prob(u) - _log_slope(u), -torch.inf)


class Beta(OnUnitInterval):
    """v^(a-1) (1-v)^(b-1) / B(a, b).

    Raises:
        ValueError: a or b is not positive.
    """

    symbol = "p"

    def __init__(self, a: float, b: float) -> None:
        _positive("a", a)
        _positive("b", b)
        self.a, self.b = a, b
        self.mean = a / (a + b)
        self.variance = a * b / ((a + b) ** 2 * (a + b + 1))
        self.centre, self.logit_variance = (value.item() for value in logit_moments(a, b))
        self._log_norm = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    def logit_log_prob(self, u: Tensor) -> Tensor:
        return self.a * logsigmoid(u) + self.b * logsigmoid(-u) - self._log_norm


class OnRealLine(Density):
    """A distribution on all of R with the beta's mean and variance: part of it lies outside (0, 1)."""

    def __init__(self, beta: Beta) -> None:
        self.mean, self.variance = beta.mean, beta.variance
        self.centre = math.log(beta.a / beta.b)

    def logit_log_prob(self, u: Tensor) -> Tensor:
        return self.log_prob(torch.sigmoid(u)) + _log_slope(u)


class SigmoidGaussian(OnUnitInterval):
    """v = sigmoid(u), u ~ N(mu, s2): the paper's approximation, q_S."""

    symbol = "q_S"

    def __init__(self, beta: Beta) -> None:
        self.centre, self.variance = beta.centre, beta.logit_variance

    def logit_log_prob(self, u: Tensor) -> Tensor:
        return _gaussian(u, self.centre, self.variance)


class Concrete(OnUnitInterval):
    """v = sigmoid(u), u logistic with the mean mu and the variance s2: the binary concrete, q_C.

    Our reading: the paper does not say how it matched the concrete distribution; here it has the logit
    moments of the beta, as q_S has. Its temperature is 1 / scale.
    """

    symbol = "q_C"

    def __init__(self, beta: Beta) -> None:
        self.centre = beta.centre
        self.scale = math.sqrt(3 * beta.logit_variance) / math.pi

    def logit_log_prob(self, u: Tensor) -> Tensor:
        return _log_slope((u - self.centre) / self.scale) - math.log(self.scale)


class Gaussian(OnRealLine):
    """N(v; m, r), with the mean m and the variance r of the beta: q_G."""

    symbol = "q_G"

    def log_prob(self, v: Tensor) -> Tensor:
        return _gaussian(torch.as_tensor(v, dtype=torch.float64), self.mean, self.variance)


class Laplace(OnRealLine):
    """exp(-|v - m| / s) / 2s, with the mean m and the variance 2 s^2 of the beta: q_L."""

    symbol = "q_L"

    def log_prob(self, v: Tensor) -> Tensor:
        v = torch.as_tensor(v, dtype=torch.float64)
        scale = math.sqrt(self.variance / 2)
        return -(v - self.mean).abs() / scale - math.log(2 * scale)


#: The approximations that the paper compares, each built from the beta that it stands in for.
APPROXIMATIONS: tuple[Callable[[Beta], Density], ...] = (SigmoidGaussian, Gaussian, Laplace, Concrete)


def kl_divergence(p: Density, q: Density) -> float:
    """KL(p || q) = int p ln(p / q), to about 12 digits; inf where p lies partly outside q's support.

    Integrated over u = logit(v) between and outside of the two places where densities bend: u = 0, and q's
    centre, where the Laplace density has its kink. There u changes with t as exp(pi/2 sinh t) does, so that
    the integrand dies off double exponentially in t and the trapezoidal rule converges fast, whatever
    the widths are.

    Raises:
        ValueError: neither p nor q is a distribution on (0, 1).
    """
    if isinstance(p, OnRealLine):
        if isinstance(q, OnUnitInterval):
            return math.inf
        raise ValueError(f"p must be a distribution on (0, 1), got {type(p).__name__}")
    step = 1 / 64
    t = torch.arange(-5, 4, step, dtype=torch.float64)
    low, high = sorted((0.0, q.centre))
    reach = torch.exp(math.pi / 2 * torch.sinh(t))  # from 0 to infinity
    share = torch.sigmoid(math.pi * torch.sinh(t))  # from 0 to 1
    u = torch.stack((low - reach, low + (high - low) * share, high + reach))
    outside = math.pi / 2 * torch.cosh(t) * reach
    between = math.pi * torch.cosh(t) * share * (1 - share) * (high - low)
    du_dt = torch.stack((outside, between, outside))
    log_p = p.logit_log_prob(u)
    integrand = log_p.exp() * (log_p - q.logit_log_prob(u)) * du_dt
    return step * integrand.sum().item()


def _log_slope(u: Tensor) -> Tensor:
    """ln of the derivative of sigmoid, ln v(1-v)."""
    return logsigmoid(u) + logsigmoid(-u)


def _gaussian(x: Tensor, mean: float, variance: float) -> Tensor:
    return -((x - mean) ** 2) / (2 * variance) - math.log(2 * math.pi * variance) / 2


def _positive(name: str, value: Tensor | float) -> Tensor:
    tensor = torch.as_tensor(value, dtype=torch.float64)
    if not (tensor > 0).all():
        raise ValueError(f"{name} must be positive, got {value}")
    return tensor
