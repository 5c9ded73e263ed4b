"""Feature maps and the plain reference that the tests of gpca share."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy.linalg import cho_factor, cho_solve
from torch import Tensor
from torch.nn.functional import interpolate


class Reference(NamedTuple):
    """What the paper's equations give, channel by channel, for one image."""

    A: np.ndarray
    B: np.ndarray
    a: np.ndarray
    mask: np.ndarray


SeparateSolves = Callable[..., Reference]


def solve_separately(
    x: np.ndarray,
    theta: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
    delta: float = 1e6,
    mean: bool = True,
    neighbours: Callable[[int], list[int]] | None = None,
) -> Reference:
    """One linear system per channel of x (C, D), in NumPy: no closed form, no shared factor.

    `neighbours(c)` lists the channels that explain c; all the others unless given.
    """
    channels = len(x)
    t0, t1, t2, t3 = theta
    distances = ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1)
    K = t0 * np.exp(-t1 * distances) + t2 + t3 * x @ x.T
    a, B = np.zeros((channels, channels)), np.zeros(channels)
    explained = np.zeros(channels)
    for c in range(channels):
        others = [i for i in (neighbours(c) if neighbours else range(channels)) if i != c]
        system = K[np.ix_(others, others)] + np.eye(len(others)) / delta
        a[c, others] = cho_solve(cho_factor(system), K[others, c])
        B[c] = K[c, c] - a[c, others] @ K[others, c]
        explained[others] += 1
    A = a.sum(0) / (explained if mean else 1)
    B = np.maximum(B, 0)
    return Reference(A, B, a, 1 / (1 + np.exp(-A / np.sqrt(1 + np.pi / 8 * B))))


@pytest.fixture
def separate_solves() -> SeparateSolves:
    return solve_separately


def make_maps(kind: str, channels: int = 40, batch: int = 2) -> Tensor:
    """Maps (batch, channels, H, W) in float64, of the kinds that have broken an implementation."""
    generator = torch.Generator().manual_seed(7)

    def noise(*shape: int) -> Tensor:
        return torch.randn(batch, channels, *shape, dtype=torch.float64, generator=generator)

    def with_dead() -> Tensor:
        x = noise(7, 7)
        x[:, : channels * 3 // 10] = 0
        return x

    def with_duplicates() -> Tensor:
        x = noise(7, 7)
        x[:, -(channels * 3 // 10) :] = x[:, : channels * 3 // 10]
        return x

    kinds: dict[str, Callable[[], Tensor]] = {
        "random": lambda: noise(7, 7),
        "smooth": lambda: interpolate(noise(4, 4), size=(9, 7), mode="bicubic").relu(),
        "dead": with_dead,
        "duplicate": with_duplicates,
        "zero": lambda: torch.zeros_like(noise(7, 7)),
        "1x1": lambda: noise(1, 1),
    }
    return kinds[kind]()


@pytest.fixture
def maps() -> Callable[..., Tensor]:
    return make_maps
