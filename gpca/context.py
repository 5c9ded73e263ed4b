"""NLNet and GCNet: what is seen at other places is added to each place."""

import torch
from torch import Tensor, nn

from gpca.base import Attention
from gpca.norms import normalise
from gpca.registry import register_attention
from gpca.timm_layers import adopt_layers, check_ratio, timm_module


@register_attention("nlnet")
class NLNet(Attention):
    """Non-local block: each place gets a mixture of all places, by how well they match (timm).

    w(u, u') = softmax over u' of t(x_u) . p(x_u')          u, u' the H W places
    y_u = x_u + BN(z(sum over u' of w(u, u') g(x_u')))      t, p, g, z: 1x1 convolutions

    After a forward pass `map` holds the share that each place has in what all places get, the mean of w
    over u: (N, H, W), with the sum 1. There is no mask: nothing is multiplied.

    2 C^2 parameters with ratio 2 as in the paper's table, and the biases and the batch norm on top: 526,592
    at C = 512 where the paper has 524,288. It is the identity at the start (batch norm with weight 0).

    Wang, Girshick, Gupta and He, "Non-local Neural Networks", CVPR 2018.

    The layers, their first values and the names in the state_dict are those of timm's `NonLocalAttn` without
    scaling. The forward pass is written here, since timm's hides the map.

    Shapes: x (N, C, H, W) -> (N, C, H, W); memory and time grow with (H W)^2.

    Args:
        channels: C, the number of channels of the input.
        ratio: how many times fewer channels in t, p and g than in x.

    Raises:
        ValueError: `ratio` is below 1.
        ImportError: timm is not installed.
    """

    t: nn.Conv2d
    p: nn.Conv2d
    g: nn.Conv2d
    z: nn.Conv2d
    norm: nn.BatchNorm2d

    def __init__(
        self,
        channels: int,
        ratio: int = 2,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, device, dtype)
        check_ratio(ratio)
        layers = timm_module("non_local_attn", "nlnet")
        adopt_layers(
            self,
            layers.NonLocalAttn(
                channels, use_scale=False, rd_ratio=1 / ratio, rd_divisor=1, device=device, dtype=dtype
            ),
        )

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        match = self.t(x).flatten(2).mT @ self.p(x).flatten(2)  # (N, HW, HW)
        weights = match.softmax(dim=2)
        self.keep(map=weights.mean(dim=1).unflatten(1, x.shape[2:]))
        mixed = (weights @ self.g(x).flatten(2).mT).mT.unflatten(2, x.shape[2:])
        return x + normalise(self.norm, self.z(mixed))


@register_attention("gcnet")
class GCNet(Attention):
    """Global context: one weighted mean over all places, through a small network, added everywhere (timm).

    w(u) = softmax over u of k . x_u              u the H W places
    y_u = x_u + W2 relu(LN(W1 sum over u of w(u) x_u))

    After a forward pass `map` holds w (N, H, W), with the sum 1. There is no mask: nothing is multiplied.

    W1 and W2 have C/ratio hidden units (rounded): 132,481 parameters at C = 512 with biases and layer norm.
    The paper names GCNet and gives no count. It adds the same to every image at the start (W2 is 0).

    Cao et al., "GCNet: Non-local Networks Meet Squeeze-Excitation Networks and Beyond", 2019.

    The layers, their first values and the names in the state_dict are those of timm's `GlobalContext` that
    adds and does not scale. The forward pass is written here, since timm's hides the map.

    Shapes: x (N, C, H, W) -> (N, C, H, W).

    Args:
        channels: C, the number of channels of the input.
        ratio: how many times fewer hidden units than channels.

    Raises:
        ValueError: `ratio` is below 1.
        ImportError: timm is not installed.
    """

    conv_attn: nn.Conv2d
    mlp_add: nn.Module

    def __init__(
        self,
        channels: int,
        ratio: int = 4,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, device, dtype)
        check_ratio(ratio)
        layers = timm_module("global_context", "gcnet")
        adopt_layers(
            self,
            layers.GlobalContext(
                channels, fuse_add=True, fuse_scale=False, rd_ratio=1 / ratio, device=device, dtype=dtype
            ),
        )

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        weights = self.conv_attn(x).flatten(2).softmax(dim=2)  # (N, 1, HW)
        self.keep(map=weights[:, 0].unflatten(1, x.shape[2:]))
        context = x.flatten(2) @ weights.mT  # (N, C, 1)
        return x + self.mlp_add(context[..., None])
