"""What every drop block is: something that hides evidence in training and is the identity at test."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from wsol.models.randomness import RandomModule
from wsol.registry import DROPS


class DropBlock(RandomModule, ABC):
    """A module at a tap, the point after a stage: (N, C, H, W) -> (N, C, H, W).

    A subclass writes `drop`, which is only called in training. Where its constructor takes `gamma`, it gets
    the backbone's own value unless the config sets one.
    """

    @abstractmethod
    def drop(self, x: Tensor) -> Tensor:
        """What becomes of the map x (N, C, H, W) in training."""

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(x) if self.training else x


@DROPS.register("none", "nothing after any stage")
class NoDrop(nn.Identity):
    """No drop block: the output is the input, in training too."""

    def __init__(self) -> None:
        super().__init__()


def check_share(name: str, value: float) -> None:
    """Refuse a probability or share outside 0 to 1."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be from 0 to 1, got {value}")
