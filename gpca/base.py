"""What every channel attention of this package has in common."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn


class ChannelAttention(nn.Module, ABC):
    """Scale each channel by a weight: y_c = v_c x_c.

    Shapes: x (N, C, H, W) -> y (N, C, H, W), with any H and W. A subclass says how the mask v (N, C)
    comes from x; it does nothing else.

    After a forward pass `mask` holds v, detached; before the first one it is None. It has the input's dtype,
    but float32 for half-precision input: masks can differ in the fourth decimal only. It is not part of
    the state_dict, and it is not stored while `torch.export` traces, which may not change the module.

    Args:
        channels: C, the number of channels of the input.

    Raises:
        TypeError: `channels` is not an int; `x` does not hold real floating-point numbers.
        ValueError: `channels` is too small; `x` is not (N, channels, H, W).
    """

    min_channels: ClassVar[int] = 1
    #: Parameters, by their name in this module, that a trainer should keep out of weight decay.
    no_weight_decay: ClassVar[tuple[str, ...]] = ()

    def __init__(self, channels: int) -> None:
        super().__init__()
        if not isinstance(channels, int) or isinstance(channels, bool):
            raise TypeError(f"channels must be an int, got {channels!r}")
        if channels < self.min_channels:
            raise ValueError(f"channels must be at least {self.min_channels}, got {channels}")
        self.channels = channels
        self.mask: Tensor | None = None

    @abstractmethod
    def compute_mask(self, x: Tensor) -> Tensor:
        """The weights v (N, C) for the maps x (N, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        mask = self.compute_mask(x).to(torch.promote_types(x.dtype, torch.float32))
        self._keep(mask)
        return (x * mask[:, :, None, None]).to(x.dtype)

    def check_input(self, x: Tensor) -> None:
        """Refuse what the module cannot answer for, before any arithmetic."""
        if not x.is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}")
        if x.ndim != 4:
            raise ValueError(f"x must be (N, C, H, W), got the shape {tuple(x.shape)}")
        if x.shape[1] != self.channels:
            raise ValueError(f"x must have {self.channels} channels, as `channels` says, got {x.shape[1]}")

    def _keep(self, mask: Tensor) -> None:
        if not torch.compiler.is_exporting():
            self.mask = mask.detach()

    def extra_repr(self) -> str:
        return str(self.channels)
