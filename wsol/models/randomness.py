"""Randomness that a training run can save, restore and repeat."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from gpca.randomness import OwnGenerator


@runtime_checkable
class Random(Protocol):
    """A module that draws from a generator of its own: the drop blocks, DANet's head, SRP."""

    def seed(self, value: int) -> None: ...
    def rng_state(self) -> Tensor: ...
    def set_rng_state(self, state: Tensor) -> None: ...


class RandomModule(OwnGenerator, nn.Module):
    """A module of ours that draws; see `OwnGenerator` for what becomes of its generator."""

    def __init__(self) -> None:
        super().__init__()
        self.start_generator()

    # The draws happen outside compiled graphs, which cannot hold a generator.
    @torch.compiler.disable
    def chance(self, probability: float) -> bool:
        """One Bernoulli draw: True with this probability."""
        return torch.rand((), generator=self._generator).item() < probability

    @torch.compiler.disable
    def uniform(self, *shape: int, device: torch.device) -> Tensor:
        """Independent draws from [0, 1) of this shape, moved to `device`."""
        return torch.rand(shape, generator=self._generator).to(device)

    @torch.compiler.disable
    def pick(self, count: int, total: int) -> Tensor:
        """`count` different numbers out of 0 .. total-1, in increasing order, as a CPU tensor."""
        return torch.randperm(total, generator=self._generator)[:count].sort().values
