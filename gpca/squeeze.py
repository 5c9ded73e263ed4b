"""SE and SRP: one excitation, two squeezes."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from gpca.base import ChannelAttention
from gpca.randomness import OwnGenerator
from gpca.registry import register_attention


@register_attention("se")
class SE(ChannelAttention):
    """Squeeze-and-excitation: the mean of each map through a small bottleneck network.

    v = sigmoid(W2 relu(W1 z)),   z_c = mean over (h, w) of x_c(h, w)

    W1 is (C//ratio, C), W2 is (C, C//ratio), no biases: 2 C (C//ratio) parameters. The hidden layer
    has at least one unit.

    Hu, Shen and Sun, "Squeeze-and-Excitation Networks", CVPR 2018.

    Shapes: x (N, C, H, W) -> (N, C, H, W).

    Args:
        channels: C, the number of channels of the input.
        ratio: how many times fewer hidden units than channels.

    Raises:
        ValueError: `ratio` is below 1.
    """

    def __init__(
        self,
        channels: int,
        ratio: int = 4,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, device, dtype)
        if ratio < 1:
            raise ValueError(f"ratio must be at least 1, got {ratio}")
        hidden = max(1, channels // ratio)
        self.fc1 = nn.Linear(channels, hidden, bias=False, device=device, dtype=dtype)
        self.fc2 = nn.Linear(hidden, channels, bias=False, device=device, dtype=dtype)

    def squeeze(self, x: Tensor) -> Tensor:
        """One number per channel: (N, C, H, W) -> (N, C)."""
        return x.mean(dim=(2, 3))

    def compute_mask(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.fc2(torch.relu(self.fc1(self.squeeze(x)))))


@register_attention("srp")
class SRP(OwnGenerator, SE):
    """Stochastic region pooling: SE whose squeeze sees a random square of the map in training.

    v = sigmoid(W2 relu(W1 z)),   z_c = mean over (h, w) in the square of x_c(h, w)

    At test the square is the whole map, which makes it SE. No parameters are added.

    Luo et al., "Stochastic Region Pooling: Make Attention More Expressive", 2019.

    Our reading: the authors published no code. Here each image has one square that all its channels share,
    with the side max(1, round(side_share * min(H, W))), uniformly placed inside the map.

    Randomness: one draw per batch, on the CPU whatever the device of x, from a generator of the
    module's own. It starts from `torch.initial_seed()`; `seed`, `rng_state` and `set_rng_state` set,
    save and restore it, so that a resumed training draws what an unbroken one would. It is not part of
    the state_dict.

    Shapes: x (N, C, H, W) -> (N, C, H, W).

    Args:
        channels: C, the number of channels of the input.
        ratio: how many times fewer hidden units than channels.
        side_share: side of the square as a share of the shorter side of the map, in (0, 1].

    Raises:
        ValueError: `ratio` is below 1; `side_share` is outside (0, 1]; x is a map of 1x1, which has no
            regions.
    """

    min_places: ClassVar[int] = 2

    def __init__(
        self,
        channels: int,
        ratio: int = 4,
        side_share: float = 0.5,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, ratio, device, dtype)
        if not 0 < side_share <= 1:
            raise ValueError(f"side_share must be in (0, 1], got {side_share}")
        self.side_share = float(side_share)
        self.start_generator()

    def squeeze(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().squeeze(x)
        height, width = x.shape[2:]
        side = max(1, round(self.side_share * min(height, width)))
        places = torch.tensor([height - side + 1, width - side + 1])
        top, left = (self._draw(x.shape[0]) * places).long().to(x.device).unbind(dim=1)
        rows = _interval(top, side, height)
        columns = _interval(left, side, width)
        inside = rows[:, None, :, None] & columns[:, None, None, :]
        return (x * inside).mean(dim=(2, 3)) * (height * width / side**2)

    def _draw(self, batch_size: int) -> Tensor:
        return torch.rand(batch_size, 2, dtype=torch.float64, generator=self._generator)


def _interval(start: Tensor, length: int, size: int) -> Tensor:
    """(N,) starts -> (N, size), True at the `length` places from each start on."""
    place = torch.arange(size, device=start.device)
    return (place >= start[:, None]) & (place < start[:, None] + length)
