"""A drop block: it hides evidence in training and is the identity at test."""

from torch import Tensor

from wsol.models.drops.block import DropBlock
from wsol.registry import DROPS


@DROPS.register("strips", "hides a horizontal strip of the map")
class Strips(DropBlock):
    """y = x with `height` rows set to zero, the same ones for the whole batch."""

    def __init__(self, height: int = 2) -> None:
        super().__init__()
        self.height = height

    def drop(self, x: Tensor) -> Tensor:
        first = int(self.uniform(1, device=x.device) * x.shape[2])
        y = x.clone()
        y[:, :, first : first + self.height] = 0
        return y
