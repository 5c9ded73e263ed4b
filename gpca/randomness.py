"""Randomness that a training run can save, restore and repeat."""

import torch
from torch import Tensor


class OwnGenerator:
    """A mixin for modules that draw: a generator of their own, on the CPU whatever the device of the input.

    So their draws neither disturb those of other parts nor differ between machines. The generator is not
    part of the state_dict: a run saves `rng_state()` beside it. It starts from `torch.initial_seed()`.
    """

    _generator: torch.Generator

    def start_generator(self) -> None:
        """Make the generator; a constructor calls this once."""
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
