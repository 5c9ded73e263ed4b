"""The leave-one-out posterior of a Gaussian process over channels, from one Cholesky factor.

The channels x_c (c = 1..C) of a map, flattened to D numbers each, are the samples of the process:

    K_ij = t0 exp(-t1 |x_i - x_j|^2) + t2 + t3 x_i.x_j
    a_c  = K_{c,-c} (K_{-c,-c} + I/delta)^-1         (1, C-1)
    B_c  = K_cc - a_c K_{c,-c}^T                     variance
    A_c  = 1/(C-1) sum_{c' != c} a_{c',c}            mean

As written these are C linear systems of size C-1. They share one factor (Rasmussen and Williams,
"Gaussian Processes for Machine Learning", 5.4.2). With M = K + I/delta, P = M^-1, d = diag P, w = 1/d:

    a_{c,i} = -P_ci / P_cc  (i != c)      B = w - 1/delta      A = (1 - P w) / (C-1)

so the matrix of the a's is never formed. All of it is float64, the Gram matrix too: in float32 dead,
duplicate or 1x1 channels lose the signal or the factor.
"""

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

#: Noise for a sample for which 1/delta is too small for a Cholesky factor, as shares of the mean of diag K,
#: added in turn until it exists. Their sum is the bound: a sample that needs more gets NaN, not a wrong mask.
JITTER = (1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3)


def gram(x: Tensor, theta: Tensor) -> Tensor:
    """K (..., C, C) from the channels x (..., C, D) and theta (4,), both float64."""
    inner = x @ x.mT
    t0, t1, t2, t3 = theta.unbind()
    return t0 * torch.exp(-t1 * squared_distances(inner)) + t2 + t3 * inner


def squared_distances(inner: Tensor) -> Tensor:
    """|x_i - x_j|^2 from the inner products x_i.x_j (..., C, C)."""
    norm = inner.diagonal(dim1=-2, dim2=-1)
    return torch.mul(inner, -2).add_(norm[..., :, None]).add_(norm[..., None, :]).clamp_min_(0)


def factor_(K: Tensor, delta: float) -> tuple[Tensor, Tensor]:
    """Cholesky factor L of K + noise I, and the noise (...,) that each matrix of the batch needed.

    The noise is 1/delta, plus the shares in `JITTER` up to the first with which the factor exists. Where
    even the bound is not enough, or K holds NaN, L is NaN. Overwrites K with K + noise I. Not
    differentiable: the jitter is a constant.
    """
    if torch.compiler.is_exporting():
        return _exported_factor(K, delta)
    diagonal = K.diagonal(dim1=-2, dim2=-1)
    scale = diagonal.mean(-1)
    noise = torch.full_like(scale, 1 / delta)
    diagonal.add_(1 / delta)
    L, info = _cholesky(K)
    failed = info > 0
    for share in JITTER:
        # A compiled graph cannot branch on data: it takes every step, and `where` picks.
        if not torch.compiler.is_compiling() and not failed.any():
            return L, noise
        more = torch.where(failed, share * scale, 0)
        noise = noise + more
        diagonal.add_(more[..., None])
        retried, info = _cholesky(K)
        L = torch.where(failed[..., None, None], retried, L)
        failed = failed & (info > 0)
    return torch.where(failed[..., None, None], torch.nan, L), noise


def _exported_factor(K: Tensor, delta: float) -> tuple[Tensor, Tensor]:
    """The same for a program that `torch.export` writes, which overwrites nothing and cannot branch on data.

    The tries with more noise are one batch, and `where` picks the first that works. A branch by `torch.cond`
    would skip them, but torch cannot write it to a file where autocast is switched off around it.
    """
    least = torch.full_like(K[..., 0, 0], 1 / delta)
    scale = K.diagonal(dim1=-2, dim2=-1).mean(-1)
    tried = torch.stack([least, *(least + share * scale for share in accumulate(JITTER))])
    factors, info = _cholesky(add_to_diagonal(K.expand(len(tried), *K.shape), tried[..., None]))
    L, noise = torch.full_like(K, torch.nan), tried[-1]
    for i in reversed(range(len(tried))):  # the first that works is picked last
        works = info[i] == 0
        L = torch.where(works[..., None, None], factors[i], L)
        noise = torch.where(works, tried[i], noise)
    return L, noise


def _cholesky(M: Tensor) -> tuple[Tensor, Tensor]:
    # The transpose of a symmetric matrix is the same matrix in the order that LAPACK wants.
    L, info = torch.linalg.cholesky_ex(M.mT)
    return L, info


def add_to_diagonal(matrix: Tensor, values: Tensor) -> Tensor:
    """A copy of (..., C, C) with `values`, broadcast to (..., C), added to the diagonal."""
    return matrix + torch.diag_embed(values.expand(matrix.shape[:-1]))


def inverse_(K: Tensor, delta: float) -> tuple[Tensor, Tensor]:
    """P = (K + noise I)^-1 (..., C, C) and the noise (...,) of `factor_`, which overwrites K."""
    L, noise = factor_(K, delta)
    identity = torch.eye(K.shape[-1], dtype=K.dtype, device=K.device).expand_as(L)
    # Faster on several cores than torch.cholesky_inverse, and no exception for a NaN factor.
    R = torch.linalg.solve_triangular(L, identity, upper=False)
    return R.mT @ R, noise


def leave_one_out(x: Tensor, theta: Tensor, delta: float, mean: bool) -> tuple[Tensor, Tensor]:
    """A and B (N, C), float64, with the gradient derived by hand.

    A second derivative is refused.

    Args:
        x: channels (N, C, D), any floating-point dtype.
        theta: (t0, t1, t2, t3), float64, not negative.
        delta: precision of the noise.
        mean: divide by C-1 as the paper does; otherwise A is the sum.
    """
    weight = 1 / (x.shape[1] - 1) if mean else 1.0
    A, B = _LeaveOneOut.apply(x, theta, delta, weight)
    return A, B.clamp_min(0)


def leave_one_out_weights(x: Tensor, theta: Tensor, delta: float) -> Tensor:
    """The matrix a (N, C, C) itself: a[n, c, i] is what channel i contributes to c; its diagonal is 0."""
    P, _ = inverse_(gram(x.double(), theta), delta)
    weights = -P / P.diagonal(dim1=-2, dim2=-1)[..., None]
    weights.diagonal(dim1=-2, dim2=-1).zero_()
    return weights


class _LeaveOneOut(torch.autograd.Function):
    """(x, theta) -> (A, B), with B not yet clamped.

    Backward, with s = -weight, p = P gA, q = P w, E = exp(-t1 D2), G = X X^T ("o" is elementwise):

        gd = -(s p + gB) o w^2        gK = -[P diag(gd) P + s/2 (p q^T + q p^T)]
        g t0 = <gK, E>   g t1 = -t0 <gK, E o D2>   g t2 = sum gK   g t3 = <gK, G>
        gD = -t0 t1 gK o E            gG = t3 gK - 2 gD + 2 diag(rowsum gD)        gX = 2 gG X

    Only P and G are kept, E and D2 are made again: a third of the memory of autograd through the Cholesky.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, theta: Tensor, delta: float, weight: float) -> tuple[Tensor, Tensor]:
        X = x.double()
        G = X @ X.mT
        t0, t1, t2, t3 = theta.unbind()
        K = squared_distances(G).mul_(-t1).exp_().mul_(t0).add_(t2).addcmul_(t3, G)
        P, noise = inverse_(K, delta)
        w = P.diagonal(dim1=-2, dim2=-1).reciprocal()
        q = (P @ w[..., None]).squeeze(-1)
        ctx.save_for_backward(x, theta, G, P, w, q)
        ctx.weight = weight
        return weight * (1 - q), w - noise[..., None]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        with torch.no_grad():
            gx, gtheta = _LeaveOneOut._gradients(ctx, *grads)
        if torch.is_grad_enabled():  # create_graph=True: P and G are constants here, x and theta are not
            sources = (*grads, *ctx.saved_tensors[:2])
            gx = None if gx is None else _NoSecondDerivative.apply(gx, *sources)
            gtheta = None if gtheta is None else _NoSecondDerivative.apply(gtheta, *sources)
        return gx, gtheta, None, None

    @staticmethod
    def _gradients(ctx: Any, gA: Tensor, gB: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, theta, G, P, w, q = ctx.saved_tensors
        t0, t1, _, t3 = theta.unbind()
        s = -ctx.weight
        p = (P @ gA[..., None]).squeeze(-1)
        gd = -(s * p + gB) * w**2
        pq = torch.stack((p, q), dim=-1)
        qp = torch.stack((q, p), dim=-2)
        gK = torch.bmm(P * gd[..., None, :], P).baddbmm_(pq, qp, beta=-1, alpha=-s / 2)

        D2 = squared_distances(G)
        W = torch.mul(D2, -t1).exp_().mul_(gK)  # gK o E
        W_rows = W.sum(-1)
        gtheta = gx = None
        if ctx.needs_input_grad[1]:
            gtheta = torch.stack((W_rows.sum(), -t0 * _inner(W, D2), gK.sum(), _inner(gK, G)))
        if ctx.needs_input_grad[0]:
            gG = gK.mul_(2 * t3).addcmul_(4 * t0 * t1, W)  # twice, for the 2 in gX
            gG.diagonal(dim1=-2, dim2=-1).addcmul_(-4 * t0 * t1, W_rows)
            gx = (gG @ x.double()).to(x.dtype)
        return gx, gtheta


class _NoSecondDerivative(torch.autograd.Function):
    """Pass a gradient on, and refuse to be differentiated by what it came from.

    `once_differentiable` is not enough: it refuses only where the incoming gradients need a gradient, and
    is silently wrong where they are constants.
    """

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *sources: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise RuntimeError("GPCA has no second derivative, other than in the variant local")


def _inner(a: Tensor, b: Tensor) -> Tensor:
    return torch.dot(a.reshape(-1), b.reshape(-1))
