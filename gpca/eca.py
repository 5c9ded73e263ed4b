"""ECA, efficient channel attention."""

import torch
from torch import Tensor, nn

from gpca.base import ChannelAttention
from gpca.registry import register_attention
from gpca.timm_layers import adopt_layers, timm_module


@register_attention("eca")
class ECA(ChannelAttention):
    """Efficient channel attention: a short convolution along the means of neighbouring channels (timm).

    v = sigmoid(w * z),   z_c = mean over (h, w) of x_c(h, w)

    w has k weights, k the odd number at log2(C)/2 + 1/2 and at least 3, and no bias: 5 parameters at C = 512,
    as the paper's table has it. The ends are padded with zeros.

    Wang et al., "ECA-Net: Efficient Channel Attention for Deep Convolutional Neural Networks", CVPR 2020.

    The layers, their first values and the names in the state_dict are those of timm's `EcaModule`. The
    forward pass is written here, since timm's hides the mask.

    Shapes: x (N, C, H, W) -> (N, C, H, W).

    Args:
        channels: C, the number of channels of the input.

    Raises:
        ImportError: timm is not installed.
    """

    conv: nn.Conv1d

    def __init__(
        self, channels: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__(channels, device, dtype)
        adopt_layers(self, timm_module("eca", "eca").EcaModule(channels, device=device, dtype=dtype))

    def compute_mask(self, x: Tensor) -> Tensor:
        return self.conv(x.mean(dim=(2, 3))[:, None])[:, 0].sigmoid()
