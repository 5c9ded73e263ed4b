"""What the attentions of this package have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn


class Attention(nn.Module, ABC):
    """A module that re-weights a feature map.

    Shapes: x (N, C, H, W) -> y (N, C, H, W) in the dtype of x, with any H and W. A subclass writes `forward`.
    `ChannelAttention` and `SpatialAttention` are the two usual kinds; what is neither derives from this.

    After a forward pass an attention holds what it has of these two, detached; the other stays None:
        mask (N, C): the weight of each channel.
        map (N, H, W): the weight of each place.
    They have the input's dtype, but float32 for half-precision input: weights can differ in the fourth
    decimal only. They are not part of the state_dict, and they are not stored while `torch.export` traces,
    which may not change the module.

    Constructors take `channels` first, then their options, then `device` and `dtype`, as layers of torch and
    timm do.

    Args:
        channels: C, the number of channels of the input.
        device, dtype: of the parameters and buffers; torch's defaults if None.

    Raises:
        TypeError: `channels` is not an int; `x` does not hold real floating-point numbers.
        ValueError: `channels` is too small; `x` is not (N, channels, H, W), or has too few places.
    """

    min_channels: ClassVar[int] = 1
    #: The fewest places H W of a map that the attention can tell apart; 2 refuses maps of 1x1.
    min_places: ClassVar[int] = 1
    #: Parameters, by their name in this module, that a trainer should keep out of weight decay.
    no_weight_decay: ClassVar[tuple[str, ...]] = ()
    #: Options that a record of a trained network should state even where they have their default, because the
    #: default may change; each with what it is in records from before the option existed.
    recorded_options: ClassVar[Mapping[str, object]] = {}

    def __init__(
        self, channels: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        if not isinstance(channels, int) or isinstance(channels, bool):
            raise TypeError(f"channels must be an int, got {channels!r}")
        if channels < self.min_channels:
            raise ValueError(f"channels must be at least {self.min_channels}, got {channels}")
        self.channels = channels
        self.mask: Tensor | None = None
        self.map: Tensor | None = None

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """The re-weighted map: (N, C, H, W) -> the same shape."""

    def scalars(self) -> dict[str, float]:
        """Learned numbers that are worth following over training, by name; a subclass gives its own."""
        return {}

    def check_input(self, x: Tensor) -> None:
        """Refuse what the module cannot answer for, before any arithmetic."""
        if not x.is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}")
        if x.ndim != 4:
            raise ValueError(f"x must be (N, C, H, W), got the shape {tuple(x.shape)}")
        if x.shape[1] != self.channels:
            raise ValueError(f"x must have {self.channels} channels, as `channels` says, got {x.shape[1]}")
        if self.min_places > 1 and x.shape[2] * x.shape[3] < self.min_places:
            raise ValueError(
                f"{type(self).__name__} cannot work on a map of {x.shape[2]}x{x.shape[3]}; take another "
                "attention, or a place in the network with a larger map"
            )

    def keep(self, mask: Tensor | None = None, map: Tensor | None = None) -> None:
        """Hold the weights of this forward pass; a `forward` calls it once."""
        if not torch.compiler.is_exporting():
            self.mask = None if mask is None else mask.detach().to(weight_dtype(mask.dtype))
            self.map = None if map is None else map.detach().to(weight_dtype(map.dtype))

    def extra_repr(self) -> str:
        return str(self.channels)


class ChannelAttention(Attention):
    """Scale each channel by a weight: y_c = v_c x_c. A subclass says how the mask v (N, C) comes from x.

    After a forward pass `mask` holds v; before the first one it is None.

    Shapes: x (N, C, H, W) -> y (N, C, H, W), with any H and W.

    Args and Raises: see `Attention`; ValueError too where a subclass returns a mask of another shape.
    """

    @abstractmethod
    def compute_mask(self, x: Tensor) -> Tensor:
        """The weights v (N, C) for the maps x (N, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        mask = self.compute_mask(x)
        _check_shape(self, "mask", mask, x.shape[:2])
        mask = mask.to(weight_dtype(x.dtype))
        self.keep(mask=mask)
        return (x * mask[:, :, None, None]).to(x.dtype)


class SpatialAttention(Attention):
    """Scale each place by a weight: y(h, w) = s(h, w) x(h, w). A subclass says how s comes from x.

    After a forward pass `map` holds s (N, H, W); before the first one it is None.

    Shapes: x (N, C, H, W) -> y (N, C, H, W), with any H and W.

    Args and Raises: see `Attention`; ValueError too where a subclass returns a map of another shape.
    """

    @abstractmethod
    def compute_map(self, x: Tensor) -> Tensor:
        """The weights s, (N, H, W) or (N, 1, H, W), for the maps x (N, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        weights = self.compute_map(x)
        if weights.ndim == 4 and weights.shape[1] == 1:
            weights = weights[:, 0]
        _check_shape(self, "map", weights, torch.Size((x.shape[0], *x.shape[2:])))
        weights = weights.to(weight_dtype(x.dtype))
        self.keep(map=weights)
        return (x * weights[:, None]).to(x.dtype)


def weight_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the weights for maps of a dtype: never coarser than float32."""
    return torch.promote_types(dtype, torch.float32)


def _check_shape(attention: Attention, what: str, weights: Tensor, expected: torch.Size) -> None:
    if weights.shape != expected:
        raise ValueError(
            f"{type(attention).__name__}.compute_{what} must return the shape {tuple(expected)} for this x, "
            f"got {tuple(weights.shape)}"
        )
