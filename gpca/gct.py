"""GCT, gated channel transformation."""

import torch
from torch import Tensor, nn

from gpca.base import ChannelAttention
from gpca.registry import register_attention

EPSILON = 1e-5


@register_attention("gct")
class GCT(ChannelAttention):
    """Gated channel transformation: channels compete by their norms, and a gate opens or closes each.

    s_c = alpha_c sqrt(sum over (h, w) of x_c(h, w)^2 + eps)
    v_c = 1 + tanh(gamma_c s_c / sqrt(mean over c' of s_c'^2 + eps) + beta_c)        y_c = v_c x_c

    alpha starts at 1, gamma and beta at 0, so it is the identity at the start. The mask is in (0, 2), not in
    (0, 1) as that of most others. 3 C parameters, as in the paper's table.

    Yang, Zhu, Wu and Yang, "Gated Channel Transformation for Visual Recognition", CVPR 2020.

    Shapes: x (N, C, H, W) -> (N, C, H, W).

    Args:
        channels: C, the number of channels of the input.
    """

    def __init__(
        self, channels: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__(channels, device, dtype)
        self.alpha = nn.Parameter(torch.ones(channels, device=device, dtype=dtype))
        self.gamma = nn.Parameter(torch.zeros(channels, device=device, dtype=dtype))
        self.beta = nn.Parameter(torch.zeros(channels, device=device, dtype=dtype))

    def compute_mask(self, x: Tensor) -> Tensor:
        # Squares of half-precision numbers overflow from 256 on.
        squares = x.to(torch.promote_types(x.dtype, torch.float32)).square().sum(dim=(2, 3))
        s = self.alpha * (squares + EPSILON).sqrt()
        scale = (s.square().mean(dim=1, keepdim=True) + EPSILON).rsqrt()
        return 1 + torch.tanh(self.gamma * s * scale + self.beta)
