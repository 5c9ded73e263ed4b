"""Which channels explain which: all of them, groups, or a window around each.

Each class turns channels x (N, C, D) into the mean A and the variance B of the posterior, (N, C) each in
float64, and gives the matrix a (N, C, C) behind them, with 0 where a channel plays no part.
"""

import math
from typing import Protocol

import torch
from torch import Tensor

from gpca.posterior import (
    add_to_diagonal,
    factor_,
    gram,
    leave_one_out,
    leave_one_out_weights,
)


class Neighbours(Protocol):
    others: int
    """How many channels explain one, away from the edges."""

    def posterior(self, x: Tensor, theta: Tensor, delta: float, mean: bool) -> tuple[Tensor, Tensor]: ...

    def weights(self, x: Tensor, theta: Tensor, delta: float) -> Tensor: ...


class Groups:
    """Consecutive groups of `size` channels; a group of all channels is the paper's GPCA.

    What remains at the end is a smaller group of its own; a single channel has nobody to be explained by, so
    it joins the group before it.
    """

    def __init__(self, channels: int, size: int) -> None:
        self.size = size
        self.others = min(size, channels) - 1
        self.equal, last = divmod(channels, size)
        if last == 1 and self.equal > 0:
            self.equal -= 1
        self.split = self.equal * size  # the first channel of the odd group, if there is one

    def posterior(self, x: Tensor, theta: Tensor, delta: float, mean: bool) -> tuple[Tensor, Tensor]:
        parts = [
            [
                value.reshape(x.shape[0], groups * part.shape[1])
                for value in leave_one_out(part, theta, delta, mean)
            ]
            for groups, part in self._parts(x)
        ]
        A, B = (torch.cat(values, dim=1) for values in zip(*parts, strict=True))
        return A, B

    def weights(self, x: Tensor, theta: Tensor, delta: float) -> Tensor:
        result = x.new_zeros(x.shape[0], x.shape[1], x.shape[1], dtype=torch.float64)
        start = 0
        for groups, part in self._parts(x):
            blocks = leave_one_out_weights(part, theta, delta).unflatten(0, (x.shape[0], groups))
            for block in blocks.unbind(dim=1):
                stop = start + block.shape[-1]
                result[:, start:stop, start:stop] = block
                start = stop
        return result

    def _parts(self, x: Tensor) -> list[tuple[int, Tensor]]:
        """The equal groups as one batch (N * groups, size, D), then the odd group (N, rest, D)."""
        parts = []
        if self.equal > 0:
            equal = x[:, : self.split].reshape(x.shape[0] * self.equal, self.size, x.shape[2])
            parts.append((self.equal, equal))
        if self.split < x.shape[1]:
            parts.append((1, x[:, self.split :]))
        return parts


class Windows:
    """Each channel is explained by the ones at most `size // 2` places away, fewer at the edges.

    A_c averages a_{c',c} over the c' whose window holds c. Our reading: the paper gives the size alone.
    A window that reaches over all channels from each of them (size >= 2C-1) is the full posterior.
    """

    def __init__(self, channels: int, size: int) -> None:
        self.reach = min(size // 2, channels - 1)
        self.others = min(2 * self.reach, channels - 1)

    @staticmethod
    def default_size(channels: int) -> int:
        """|log2(C)/2 + 1/2| made odd upwards, as in ECA; at least 3, since 1 would hold no neighbour."""
        size = int(abs(math.log2(channels) / 2 + 1 / 2))
        return max(3, size if size % 2 else size + 1)

    def posterior(self, x: Tensor, theta: Tensor, delta: float, mean: bool) -> tuple[Tensor, Tensor]:
        a, B = self._solve(x, theta, delta)
        index, inside = self._places(x)
        # a_{c',c} with c' = index[c, j]: seen from c', channel c lies at the mirrored place.
        mirrored = torch.arange(2 * self.reach, -1, -1, device=x.device)
        A = (a[:, index, mirrored] * inside).sum(-1)
        if mean:
            A = A / (inside.sum(-1) - 1)
        return A, B.clamp_min(0)

    def weights(self, x: Tensor, theta: Tensor, delta: float) -> Tensor:
        a, _ = self._solve(x, theta, delta)
        index, inside = self._places(x)
        result = x.new_zeros(x.shape[0], x.shape[1], x.shape[1], dtype=torch.float64)
        # Places outside are clamped to real channels: they add 0 there.
        return result.scatter_add(2, index.expand_as(a), a * inside)

    def _solve(self, x: Tensor, theta: Tensor, delta: float) -> tuple[Tensor, Tensor]:
        """a (N, C, window) with 0 for the channel itself, and B (N, C), by autograd."""
        index, inside = self._places(x)
        K = gram(x.double(), theta)
        local = K[:, index[:, :, None], index[:, None, :]]
        local = local * (inside[:, :, None] & inside[:, None, :])
        # A place outside the map becomes a channel of variance 1 that nobody is related to.
        local = add_to_diagonal(local, (~inside).to(local.dtype))

        with torch.no_grad():
            found, noise = factor_(local.clone(), delta)
        # The factor again with the noise that works: a failed try would leave NaN in the gradient.
        L, _ = torch.linalg.cholesky_ex(add_to_diagonal(local, noise[..., None]))
        unit = torch.zeros_like(local[..., :1])
        unit[..., self.reach, :] = 1
        column = torch.cholesky_solve(unit, L).squeeze(-1)  # the column of P of the window's centre
        column = torch.where(found[..., -1].isnan(), torch.nan, column)
        w = column[..., self.reach].reciprocal()
        a = -column * w[..., None]
        others = torch.arange(a.shape[-1], device=a.device) != self.reach
        return a * others, w - noise

    def _places(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The channels of each window (C, window), clamped into the map, and which of them are real."""
        channels = x.shape[1]
        offset = torch.arange(-self.reach, self.reach + 1, device=x.device)
        index = torch.arange(channels, device=x.device)[:, None] + offset
        inside = (index >= 0) & (index < channels)
        return index.clamp(0, channels - 1), inside
