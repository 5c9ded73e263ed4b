"""Randomness that a training run can save, restore and repeat."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn


@runtime_checkable
class Random(Protocol):
    """A module that draws from a generator of its own: the drop blocks, DANet's head, SRP."""

    def seed(self, value: int) -> None: ...
    def rng_state(self) -> Tensor: ...
    def set_rng_state(self, state: Tensor) -> None: ...


class RandomModule(nn.Module):
    """A module with a generator of its own, on the CPU whatever the device of its input.

    So its draws neither disturb those of other parts nor differ between machines. The generator is not part
    of the state_dict: a run saves `rng_state()` beside it. It starts from `torch.initial_seed()`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._generator = torch.Generator()
        self.seed(torch.initial_seed())

    def seed(self, value: int) -> None:
        """Start the draws anew from `value`."""
        self._generator.manual_seed(value)

    def rng_state(self) -> Tensor:
        """The state of the generator, a uint8 tensor on the CPU."""
        return self._generator.get_state()

    def set_rng_state(self, state: Tensor) -> None:
        """Continue from a state that `rng_state` returned."""
        self._generator.set_state(state)

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
