"""CBAM, the convolutional block attention module, and its channel part alone."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gpca.base import Attention, ChannelAttention
from gpca.registry import register_attention
from gpca.timm_layers import adopt_layers, check_ratio, timm_module


@register_attention("cbam-s")
class CBAMChannel(ChannelAttention):
    """The channel part of CBAM: mean and maximum of each map through one bottleneck network (timm).

    v = sigmoid(W2 relu(W1 mean x) + W2 relu(W1 max x)),   mean and maximum over (h, w)

    W1 and W2 have C/ratio hidden units (rounded) and no biases: 2 C^2/ratio parameters.

    Woo et al., "CBAM: Convolutional Block Attention Module", ECCV 2018. The GPCA paper calls it CBAM-S.

    The layers, their first values and the names in the state_dict are those of timm's `ChannelAttn`. The
    forward pass is written here, since timm's hides the mask.

    Shapes: x (N, C, H, W) -> (N, C, H, W).

    Args:
        channels: C, the number of channels of the input.
        ratio: how many times fewer hidden units than channels.

    Raises:
        ValueError: `ratio` is below 1.
        ImportError: timm is not installed.
    """

    fc1: nn.Conv2d
    fc2: nn.Conv2d

    def __init__(
        self,
        channels: int,
        ratio: int = 4,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, device, dtype)
        check_ratio(ratio)
        layers = timm_module("cbam", "cbam-s")
        adopt_layers(self, layers.ChannelAttn(channels, rd_ratio=1 / ratio, device=device, dtype=dtype))

    def compute_mask(self, x: Tensor) -> Tensor:
        return _channel_mask(self, x)[:, :, 0, 0]


@register_attention("cbam")
class CBAM(Attention):
    """CBAM: weigh the channels, then the places of what comes out (timm).

    v = sigmoid(W2 relu(W1 mean x) + W2 relu(W1 max x))          mean and maximum over (h, w)
    s = sigmoid(BN(conv7x7[mean v x, max v x]))                  mean and maximum over the channels
    y_c(h, w) = s(h, w) v_c x_c(h, w)

    After a forward pass `mask` holds v (N, C) and `map` s (N, H, W).

    2 C^2/ratio + 98 parameters as in the paper's table, and 2 more for the batch norm: 131,172 at C = 512
    where the paper has 131,170.

    Woo et al., "CBAM: Convolutional Block Attention Module", ECCV 2018.

    The layers, their first values and the names in the state_dict are those of timm's `CbamModule`. The
    forward pass is written here, since timm's hides mask and map.

    Shapes: x (N, C, H, W) -> (N, C, H, W), with more than one place.

    Args:
        channels: C, the number of channels of the input.
        ratio: how many times fewer hidden units than channels.

    Raises:
        ValueError: `ratio` is below 1; x is a map of 1x1.
        ImportError: timm is not installed.
    """

    min_places: ClassVar[int] = 2
    channel: Any  # layers of timm, which has no types
    spatial: Any

    def __init__(
        self,
        channels: int,
        ratio: int = 4,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, device, dtype)
        check_ratio(ratio)
        layers = timm_module("cbam", "cbam")
        adopt_layers(self, layers.CbamModule(channels, rd_ratio=1 / ratio, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        mask = _channel_mask(self.channel, x)
        x = x * mask
        both = torch.cat([x.mean(dim=1, keepdim=True), x.amax(dim=1, keepdim=True)], dim=1)
        weights = self.spatial.conv(both).sigmoid()
        self.keep(mask=mask[:, :, 0, 0], map=weights[:, 0])
        return x * weights


def _channel_mask(layers: Any, x: Tensor) -> Tensor:
    """(N, C, 1, 1) by the layers fc1 and fc2 of a module."""
    means, peaks = x.mean(dim=(2, 3), keepdim=True), x.amax(dim=(2, 3), keepdim=True)
    return (layers.fc2(layers.fc1(means).relu()) + layers.fc2(layers.fc1(peaks).relu())).sigmoid()
