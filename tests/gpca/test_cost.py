"""Multiply-adds, against counts by hand."""

import pytest
import torch
from torch import nn

from gpca import GPCA, SE, build_attention, multiply_adds


def test_a_factor_costs_what_textbooks_say() -> None:
    class Solve(nn.Module):
        def forward(self, K: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.linalg.solve_triangular(torch.linalg.cholesky_ex(K).L, b, upper=False)

    K = torch.eye(12).expand(2, 12, 12)
    assert multiply_adds(Solve(), K, torch.zeros(2, 12, 5)) == 2 * 12**3 // 6 + 2 * 12**2 * 5 // 2


def test_local_windows_are_factored_and_solved() -> None:
    """Gram matrix, then for each channel a window of k: its factor twice, and one solve with it."""
    C, places, k = 24, 30, 5
    windows = C * (2 * k**3 // 6 + k * k)
    counted = multiply_adds(GPCA(C, "local", window=k), torch.rand(1, C, 5, 6))
    assert counted == pytest.approx(C * C * places + windows, abs=C)


def test_gpca_is_cubic_in_its_channels() -> None:
    """Gram matrix, factor, inverse of the factor, its square, and one product with a vector."""
    C, places = 24, 30
    expected = C * C * places + C**3 // 6 + C**3 // 2 + C**3 + C * C
    assert multiply_adds(GPCA(C), torch.rand(1, C, 5, 6)) == expected


def test_se_and_batches() -> None:
    se = SE(16)
    assert multiply_adds(se, torch.rand(1, 16, 5, 5)) == 2 * 16 * 4
    assert multiply_adds(se, torch.rand(3, 16, 9, 9)) == 3 * 2 * 16 * 4
    assert multiply_adds(build_attention("constant", 16), torch.rand(1, 16, 5, 5)) == 0


def test_modes_are_left_as_they_were() -> None:
    network = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.Dropout())
    network[1].eval()
    before = {key: value.clone() for key, value in network.state_dict().items()}
    multiply_adds(network, torch.rand(2, 4, 3, 3))
    assert [part.training for part in network] == [True, False, True]
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
