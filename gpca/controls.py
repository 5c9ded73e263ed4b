"""Attentions that look at nothing: what the others are compared with."""

import torch
from torch import Tensor

from gpca.base import ChannelAttention
from gpca.registry import register_attention


@register_attention("identity")
class Identity(ChannelAttention):
    """No attention: y = x, the mask is 1.

    Shapes: x (N, C, H, W) -> the same tensor.
    """

    def compute_mask(self, x: Tensor) -> Tensor:
        return torch.ones(x.shape[:2], dtype=x.dtype, device=x.device)

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        self.keep(mask=self.compute_mask(x))
        return x


@register_attention("constant")
class Constant(ChannelAttention):
    """The same fixed weight for every channel: the control that separates attention from scaling.

    y = value * x. A mask that hardly varies still scales the logits, and that alone changes training.
    What a module does beyond it shows against this one.

    Shapes: x (N, C, H, W) -> (N, C, H, W).

    Args:
        channels: C, the number of channels of the input.
        value: the weight, in (0, 1].

    Raises:
        ValueError: `value` is outside (0, 1].
    """

    def __init__(
        self,
        channels: int,
        value: float = 0.5,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, device, dtype)
        if not 0 < value <= 1:
            raise ValueError(f"value must be in (0, 1], got {value}")
        self.value = float(value)

    def compute_mask(self, x: Tensor) -> Tensor:
        return torch.full(x.shape[:2], self.value, dtype=x.dtype, device=x.device)

    def extra_repr(self) -> str:
        return f"{self.channels}, value={self.value}"
