"""What an attention costs: multiply-adds, counted while it runs."""

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from gpca.eval_mode import in_eval

if TYPE_CHECKING:
    from torch.utils.flop_counter import FlopCounterMode


def _cholesky(matrix: torch.Size, *_: Any, **__: Any) -> int:
    return math.prod(matrix) * matrix[-1] // 3


def _triangular(matrix: torch.Size, right: torch.Size, *_: Any, **__: Any) -> int:
    return math.prod(right) * right[-2]


def _cholesky_solve(right: torch.Size, *_: Any, **__: Any) -> int:
    return 2 * math.prod(right) * right[-2]  # two triangular solves


#: Operations that torch's counter does not know, with their floating-point operations (two per multiply-add).
FACTORISATIONS = {
    torch.ops.aten.linalg_cholesky_ex: _cholesky,
    torch.ops.aten.linalg_solve_triangular: _triangular,
    torch.ops.aten.cholesky_solve: _cholesky_solve,
}


def counter() -> "FlopCounterMode":
    """Torch's counter of floating-point operations, which here knows the factorisations of GPCA too."""
    from torch.utils.flop_counter import FlopCounterMode  # here, since it imports more than torch

    return FlopCounterMode(display=False, custom_mapping=FACTORISATIONS)


def multiply_adds(module: nn.Module, *inputs: Any) -> int:
    """Multiply-adds of one forward pass at test.

    Counted while the module runs on the inputs: convolutions, matrix products, Cholesky factors (n^3/6) and
    triangular solves (n^2/2 for each right-hand side). Elementwise operations, means, norms and softmax are
    not counted, as in the figures that papers print; so scaling a map costs nothing here.

    >>> multiply_adds(nn.Conv2d(8, 4, 3, padding=1), torch.zeros(1, 8, 5, 5))
    7200
    """
    with in_eval(module), torch.no_grad(), counter() as counted:
        module(*inputs)
    return counted.get_total_flops() // 2
