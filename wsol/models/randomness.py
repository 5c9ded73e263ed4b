"""Randomness that a training run can save, restore and repeat."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from gpca.randomness import OwnGenerator


@runtime_checkable
class Random(Protocol):
    """A part that draws from a generator of its own: drop blocks, batch transforms, DANet's head, SRP."""

    def seed(self, value: int) -> None: ...
    def rng_state(self) -> Tensor: ...
    def set_rng_state(self, state: Tensor) -> None: ...


class Draws(OwnGenerator):
    """What our random parts draw, each from its own generator; see `OwnGenerator` for what becomes of it."""

    # The draws happen outside compiled graphs, which cannot hold a generator.
    @torch.compiler.disable
    def chance(self, probability: float) -> bool:
        """One Bernoulli draw: True with this probability."""
        return torch.rand((), generator=self._generator).item() < probability

    @torch.compiler.disable
    def uniform(self, *shape: int, device: torch.device | str = "cpu") -> Tensor:
        """Independent draws from [0, 1) of this shape, moved to `device`."""
        return torch.rand(shape, generator=self._generator).to(device)

    @torch.compiler.disable
    def integers(self, below: int, *shape: int) -> Tensor:
        """Independent draws from 0 .. below-1 of this shape, as a CPU tensor."""
        return torch.randint(below, shape, generator=self._generator)

    @torch.compiler.disable
    def permutation(self, total: int) -> Tensor:
        """The numbers 0 .. total-1 in a random order, as a CPU tensor."""
        return torch.randperm(total, generator=self._generator)

    @torch.compiler.disable
    def pick(self, count: int, total: int) -> Tensor:
        """`count` different numbers out of 0 .. total-1, in increasing order, as a CPU tensor."""
        return self.permutation(total)[:count].sort().values


class RandomModule(Draws, nn.Module):
    """A module that draws in its forward pass or loss."""

    def __init__(self) -> None:
        super().__init__()
        self.start_generator()


def seed_each(parts: Iterable[tuple[str, Random]], value: int) -> None:
    """Seed random parts from one number, each differently and by its name, so that no other part matters."""
    for name, part in parts:
        # torch's CPU generator looks at 32 bits of a seed alone, so both go into those.
        part.seed(zlib.crc32(f"{value} {name}".encode()))
