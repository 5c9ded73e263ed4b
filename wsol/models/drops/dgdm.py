"""DGDM, the dual-attention guided dropblock module."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from wsol.models.drops.adl import most_discriminative, spatial_attention
from wsol.models.drops.block import DropBlock, check_share
from wsol.registry import DROPS


@DROPS.register("dgdm", "dual-attention guided dropblock (Yin et al., 2020); gamma as for adl")
class DGDM(DropBlock):
    """Drop some weak channels, and erase blocks of the most discriminative area.

    Channel part, per image: channels are ranked by a = sigmoid(mean over (h, w) of x); the first
    round(keep * C) stay, each other one is dropped with probability `channel_rate`, so some weak ones stay.

    Spatial part, one draw b ~ Bernoulli(drop_rate) for the whole batch, A as in ADL:

        b = 1:  seeds ~ Bernoulli(seed_rate) where A >= gamma max_hw A; the block x block square around each
                seed becomes zero
        b = 0:  the map is multiplied by sigmoid(A)

    Both act on every batch; no gradient through a mask, nothing rescaled. At test y = x.

    Yin, Zhang, Chang, Ma and Guo, "Dual-attention Guided Dropblock Module for Weakly Supervised Object
    Localization", 2020.

    Our reading: the authors published no code and the abstract gives only the two ideas, so all numbers, the
    draws and the way the parts combine are ours. A sigmoid keeps the order, so we rank the means themselves.

    Shapes: x (N, C, H, W) -> (N, C, H, W).

    Args:
        drop_rate: probability that blocks are erased (b = 1); else the map is strengthened (b = 0).
        gamma: threshold as a share of the maximum; smaller erases more.
        keep: share of the channels that always stay.
        channel_rate: probability with which each other channel is dropped.
        block: odd side of an erased square, in cells of the map.
        seed_rate: probability with which a cell above the threshold becomes the centre of a square.

    Raises:
        ValueError: a share is outside 0 to 1, or `block` is not odd and positive.
    """

    def __init__(
        self,
        drop_rate: float = 0.75,
        gamma: float = 0.9,
        keep: float = 0.5,
        channel_rate: float = 0.25,
        block: int = 3,
        seed_rate: float = 0.1,
    ) -> None:
        super().__init__()
        check_share("drop_rate", drop_rate)
        check_share("gamma", gamma)
        check_share("keep", keep)
        check_share("channel_rate", channel_rate)
        check_share("seed_rate", seed_rate)
        if block < 1 or block % 2 == 0:
            raise ValueError(f"block must be odd and positive, got {block}")
        self.drop_rate = drop_rate
        self.gamma = gamma
        self.keep = keep
        self.channel_rate = channel_rate
        self.block = block
        self.seed_rate = seed_rate

    def drop(self, x: Tensor) -> Tensor:
        kept = self.kept_channels(x).to(x.dtype)
        if self.chance(self.drop_rate):
            return x * kept * (~self.erased_cells(x)).to(x.dtype)
        return x * kept * spatial_attention(x).sigmoid()

    @torch.no_grad()
    def kept_channels(self, x: Tensor) -> Tensor:
        """Which channels stay: bool (N, C, 1, 1)."""
        num, channels = x.shape[:2]
        strongest = x.mean(dim=(2, 3)).topk(round(self.keep * channels), dim=1).indices
        stays = self.uniform(num, channels, device=x.device) >= self.channel_rate
        return stays.scatter(1, strongest, True)[:, :, None, None]

    @torch.no_grad()
    def erased_cells(self, x: Tensor) -> Tensor:
        """Which cells of the map become zero: bool (N, 1, H, W)."""
        attention = spatial_attention(x)
        seeds = self.uniform(*attention.shape, device=x.device) < self.seed_rate
        seeds &= most_discriminative(attention, self.gamma)
        return F.max_pool2d(seeds.float(), self.block, stride=1, padding=self.block // 2) > 0

    def extra_repr(self) -> str:
        return (
            f"drop_rate={self.drop_rate}, gamma={self.gamma}, keep={self.keep}, "
            f"channel_rate={self.channel_rate}, block={self.block}, seed_rate={self.seed_rate}"
        )
