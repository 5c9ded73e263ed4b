"""ADL, the attention-based dropout layer."""

from __future__ import annotations

import torch
from torch import Tensor

from wsol.models.drops.block import DropBlock, check_share
from wsol.registry import DROPS


def spatial_attention(x: Tensor) -> Tensor:
    """A = mean over c of relu(x_c): (N, C, H, W) -> (N, 1, H, W).

    Our reading: the relu. After a stage that ends in one it changes nothing; after any other the plain mean
    can be negative everywhere, and a share of a negative maximum would drop nothing.
    """
    return x.relu().mean(dim=1, keepdim=True)


def most_discriminative(attention: Tensor, gamma: float) -> Tensor:
    """1[A >= gamma max_hw A], the maximum per image: (N, 1, H, W) -> bool of the same shape."""
    return attention >= gamma * attention.amax(dim=(2, 3), keepdim=True)


@DROPS.register("adl", "attention-based dropout (Choe and Shim, 2019); gamma is the backbone's unless set")
class ADL(DropBlock):
    """Hide the most discriminative part of a map, or strengthen what counts.

    With A the attention of `spatial_attention` and one draw b ~ Bernoulli(drop_rate) for the whole batch:

        b = 1:  y = x * 1[A < gamma max_hw A]      the maximum per image; no gradient through the mask
        b = 0:  y = x * sigmoid(A)                 the gradient flows through the sigmoid

    Nothing is rescaled. At test y = x.

    Choe and Shim, "Attention-based Dropout Layer for Weakly Supervised Object Localization", CVPR 2019.

    Shapes: x (N, C, H, W) -> (N, C, H, W).

    Args:
        drop_rate: probability that the batch is masked (b = 1); else it is strengthened (b = 0).
        gamma: threshold as a share of the maximum; smaller hides more.

    Raises:
        ValueError: an argument is outside 0 to 1.
    """

    def __init__(self, drop_rate: float = 0.75, gamma: float = 0.9) -> None:
        super().__init__()
        check_share("drop_rate", drop_rate)
        check_share("gamma", gamma)
        self.drop_rate = drop_rate
        self.gamma = gamma

    def drop(self, x: Tensor) -> Tensor:
        if self.chance(self.drop_rate):
            with torch.no_grad():
                hidden = most_discriminative(spatial_attention(x), self.gamma)
            return x * (~hidden).to(x.dtype)
        return x * spatial_attention(x).sigmoid()

    def extra_repr(self) -> str:
        return f"drop_rate={self.drop_rate}, gamma={self.gamma}"
