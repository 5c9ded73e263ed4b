"""BAM, the bottleneck attention module."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gpca.base import Attention
from gpca.norms import normalise
from gpca.registry import register_attention


@register_attention("bam")
class BAM(Attention):
    """Bottleneck attention: a weight for each channel and one for each place, multiplied before one gate.

    m = W2 relu(BN(W1 mean x))                                            (N, C), mean over (h, w)
    p = conv1x1(relu(BN(dilated conv3x3(relu(BN(conv1x1 x))))))           (N, H, W), C/ratio channels inside
    y_c(h, w) = (1 + sigmoid(m_c p(h, w))) x_c(h, w)

    The weights 1 + sigmoid(m p) are in (1, 2) and differ with channel and place. After a forward pass `mask`
    holds their means over the places (N, C), and `map` their means over the channels (N, H, W).

    (3 C^2 + C)/ratio + 9 C^2/ratio^2 parameters as in the paper's table, and on top the biases of the two
    last layers (C + 1) and three batch norms (6 C/ratio): 345,473 at C = 512 where the paper has 344,192.
    Layers before a batch norm have no bias, which it would remove.

    Park, Woo, Lee and Kweon, "BAM: Bottleneck Attention Module", BMVC 2018.

    Departs from its authors' code: one dilated convolution and ratio 4, as the GPCA paper's count says,
    where they have two and 16. In training with a single image the batch norm of the channels uses its
    running statistics (`gpca.norms`).

    Shapes: x (N, C, H, W) -> (N, C, H, W), with more than one place.

    Args:
        channels: C, the number of channels of the input.
        ratio: how many times fewer channels inside; at least one is left.
        dilation: of the 3x3 convolution.

    Raises:
        ValueError: `ratio` or `dilation` is below 1; x is a map of 1x1.
    """

    min_places: ClassVar[int] = 2

    def __init__(
        self,
        channels: int,
        ratio: int = 4,
        dilation: int = 4,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, device, dtype)
        for option, value in (("ratio", ratio), ("dilation", dilation)):
            if value < 1:
                raise ValueError(f"{option} must be at least 1, got {value}")
        hidden = max(1, channels // ratio)
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.fc1 = nn.Linear(channels, hidden, bias=False, **place)
        self.fc_norm = nn.BatchNorm1d(hidden, **place)
        self.fc2 = nn.Linear(hidden, channels, **place)
        self.reduce = nn.Conv2d(channels, hidden, 1, bias=False, **place)
        self.reduce_norm = nn.BatchNorm2d(hidden, **place)
        self.dilated = nn.Conv2d(hidden, hidden, 3, padding=dilation, dilation=dilation, bias=False, **place)
        self.dilated_norm = nn.BatchNorm2d(hidden, **place)
        self.final = nn.Conv2d(hidden, 1, 1, **place)

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        squeezed = normalise(self.fc_norm, self.fc1(x.mean(dim=(2, 3))))
        by_channel = self.fc2(squeezed.relu())[:, :, None, None]
        hidden = normalise(self.reduce_norm, self.reduce(x)).relu()
        by_place = self.final(normalise(self.dilated_norm, self.dilated(hidden)).relu())
        weights = 1 + torch.sigmoid(by_channel * by_place)
        self.keep(mask=weights.mean(dim=(2, 3)), map=weights.mean(dim=1))
        return x * weights
