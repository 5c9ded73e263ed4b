"""Cholesky factors and triangular systems for ONNX, which has neither: written with operators that it has.

`TRANSLATIONS` tells `torch.onnx.export` how to write three functions of torch, for matrices (..., n, n) of
float64 with any batch dimensions. Both algorithms go over the matrix in blocks of `BLOCK` columns: a loop of
the graph inside a block, a matrix product for what is left. Nothing is inverted on the way, so the rounding
errors are those of LAPACK. GPCA needs that: its K + I/delta is ill-conditioned where channels are dead or
alike.

Needs the package onnxscript; `wsol.models.export` imports this module only where ONNX is written.
"""
# The annotations below are ONNX types, which onnxscript reads: no `from __future__ import annotations` here.

from collections.abc import Callable
from typing import Any

import torch
from onnxscript import DOUBLE, INT64, script
from onnxscript import opset18 as op
from onnxscript.values import Opset

BLOCK = 16
INT32 = 6  # ONNX's number of the type
_functions = Opset("wsol.linear_algebra", 1)


@script(_functions)
def factor(M: DOUBLE[...], block: INT64) -> DOUBLE[...]:
    """The Cholesky factors L (N, n, n) of the symmetric matrices M (N, n, n).

    Inside a block, column by column:   L_k = W_k / sqrt(W_kk) below the diagonal,   W <- W - L_k L_k^T.
    A pivot W_kk that is not positive makes the rest of its matrix NaN.
    """
    size = op.Shape(M, start=1, end=2)
    step = op.Unsqueeze(block, [0])
    blocks = op.Squeeze((size + step - 1) / step)
    zero = op.CastLike(0.0, M)
    L = op.Slice(M, [0], [0], [2])
    rest = M
    for j in range(blocks):
        W = op.Slice(rest, [0], step, [2])
        rows = op.Range(0, op.Squeeze(op.Shape(W, start=1, end=2)), 1)
        width = op.Shape(W, start=2, end=3)
        columns = op.Range(0, op.Squeeze(width), 1)
        for k in range(op.Squeeze(width)):
            column = op.Gather(W, k, axis=2)
            pivot = op.Gather(column, op.Unsqueeze(k, [0]), axis=1)
            found = op.Where(rows < k, zero, column / op.Sqrt(pivot))
            down = op.Unsqueeze(found, [2])
            across = op.Unsqueeze(op.Slice(found, [0], width, [1]), [1])
            W = op.Where(columns == k, down, W - down * across)
        L = op.Concat(L, op.Pad(W, op.Concat([0], step * j, [0, 0, 0, 0], axis=0)), axis=2)
        below = op.Slice(W, step, size, [1])
        trailing = op.Slice(rest, op.Concat(step, step, axis=0), op.Concat(size, size, axis=0), [1, 2])
        rest = trailing - op.MatMul(below, op.Transpose(below, perm=[0, 2, 1]))
    return L


@script(_functions)
def solve(L: DOUBLE[...], B: DOUBLE[...], block: INT64) -> DOUBLE[...]:
    """X (N, n, q) with L X = B, for lower triangles L (N, n, n).

    Inside a block, row by row:   X_k = R_k / L_kk,   R <- R - L_k X_k below row k; R begins as B.
    """
    size = op.Shape(L, start=1, end=2)
    step = op.Unsqueeze(block, [0])
    blocks = op.Squeeze((size + step - 1) / step)
    zero = op.CastLike(0.0, B)
    X = op.Slice(B, [0], [0], [1])
    rest = B
    for j in range(blocks):
        panel = op.Slice(L, step * j, step * (j + 1), [2])
        triangle = op.Slice(panel, step * j, step * (j + 1), [1])
        R = op.Slice(rest, [0], step, [1])
        width = op.Squeeze(op.Shape(R, start=1, end=2))
        rows = op.Unsqueeze(op.Range(0, width, 1), [1])
        for k in range(width):
            at = op.Unsqueeze(k, [0])
            column = op.Gather(triangle, at, axis=2)
            found = op.Gather(R, at, axis=1) / op.Gather(column, at, axis=1)
            R = op.Where(rows == k, found, R - op.Where(rows > k, column, zero) * found)
        X = op.Concat(X, R, axis=1)
        rest = op.Slice(rest, step, size, [1]) - op.MatMul(op.Slice(panel, step * (j + 1), size, [1]), R)
    return X


def cholesky_ex(self: Any, upper: bool = False, check_errors: bool = False) -> tuple[Any, Any]:
    """torch.linalg.cholesky_ex(M): L, and info, which is 1 where M is not positive definite.

    torch gives the number of the pivot that failed; no caller here asks which one it was.
    """
    L = factor(_as_batch(self), op.Constant(value_int=BLOCK))
    corner = [self.shape[-1] - 1]
    last = op.Slice(L, corner * 2, [corner[0] + 1] * 2, [1, 2])  # NaN once a pivot has failed
    info = op.Reshape(op.Cast(op.IsNaN(last), to=INT32), op.Shape(self, end=-2))
    return op.Reshape(L, op.Shape(self)), info


def solve_triangular(self: Any, B: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """torch.linalg.solve_triangular(L, B, upper=False), both with the same batch dimensions."""
    found = solve(_as_batch(self), _as_batch(B), op.Constant(value_int=BLOCK))
    return op.Reshape(found, op.Shape(B))


def cholesky_solve(self: Any, input2: Any, upper: bool = False) -> Any:
    """torch.cholesky_solve(B, L) = R^T R B with L R = I."""
    L = _as_batch(input2)
    identity = op.Expand(op.CastLike(op.EyeLike(op.ConstantOfShape(op.Shape(L, start=1))), L), op.Shape(L))
    R = solve(L, identity, op.Constant(value_int=BLOCK))
    found = op.MatMul(op.Transpose(R, perm=[0, 2, 1]), op.MatMul(R, _as_batch(self)))
    return op.Reshape(found, op.Shape(self))


def _as_batch(x: Any) -> Any:
    """(..., m, n) as (N, m, n)."""
    return op.Reshape(x, op.Concat(op.Constant(value_ints=[-1]), op.Shape(x, start=-2), axis=0))


TRANSLATIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.ops.aten.linalg_cholesky_ex.default: cholesky_ex,
    torch.ops.aten.linalg_solve_triangular.default: solve_triangular,
    torch.ops.aten.cholesky_solve.default: cholesky_solve,
}
