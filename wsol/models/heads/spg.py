"""SPG's head: side branches that learn where the object is from one another."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wsol.data.hierarchy import Hierarchy
from wsol.models.backbone import Outline
from wsol.models.heads.class_maps import ClassMaps, convolution, min_max, select_maps, two_convolutions
from wsol.models.heads.head import Head, MakeAttention, Tail
from wsol.models.heads.targets import Targets, cross_entropy, weighted
from wsol.records import LocalizerOutput
from wsol.registry import HEADS

SIDE_WIDTH = 512  # of the side branches' convolutions, where the head is at least as wide
FEW_PIXELS = 30  # with fewer above the high threshold, the foreground is relative to the maximum
SHARE_OF_MAX = 0.7


@HEADS.register("spg", "self-produced guidance: side branches that teach one another (Zhang et al., 2018)")
class SPG(Head):
    """Classify, and let three side branches of one channel each say where the foreground is.

        h = relu(conv3x3(relu(conv3x3 x)))      m = attention(conv1x1 h)      logits: the means of m
        B1 = shared(relu(conv3x3 x1))           B2 = shared(relu(conv3x3 x2))
        C = conv1x1(relu(conv3x3 h))            shared: conv3x3, ReLU, conv1x1, the same for B1 and B2

    x is the backbone's last output, x1 and x2 are those of the stages `sides`. All maps are enlarged to the
    image's size (bilinear). Each branch learns from a guide g without gradient, by binary cross-entropy over
    the pixels that g decides:

        branch  guide                              foreground    background
        B2      min-max(m_y), y the true class     g > high[0]   g < low[0]
        B1      sigmoid(B2)                        g > high[1]   g < low[1]
        C       (sigmoid(B1) + sigmoid(B2)) / 2    g > high[2]   g < low[2]

    Where fewer than 30 pixels of an image are foreground by this rule, its foreground is g > 0.7 max g. A
    pixel that is both is background; one that is neither is ignored. loss = CE(logits, y) + the three losses.
    The test map is m_c.

    Zhang et al., "Self-produced Guidance for Weakly Supervised Object Localization", ECCV 2018.

    Where labels are mixed, B2's term is the weighted mean over the pairs (our reading). Our reading too: h on
    every backbone, where the authors' ResNet50 has C right after layer4 (`channels: 0` does that); the class
    map alone has an attention; the image's size is that of x times its stride.

    Args:
        sides: the two stages of x1 and x2; by default those that the backbone names `spg`.
        channels: width of h; 0 leaves its convolutions out. The side branches have it too, but at most 512.
        high, low: the thresholds of the three guides, in the order of the table. The usual ones are the
            authors'.

    Raises:
        ValueError: no such stage, or not two; or a threshold outside 0 to 1, or low above high.
    """

    def __init__(
        self,
        outline: Outline,
        classes: int,
        hierarchy: Hierarchy | None,
        make_attention: MakeAttention,
        sides: str | tuple[str, ...] = "spg",
        channels: int = 1024,
        high: tuple[float, float, float] = (0.7, 0.5, 0.7),
        low: tuple[float, float, float] = (0.05, 0.05, 0.1),
    ) -> None:
        super().__init__()
        if channels < 0:
            raise ValueError(f"channels must be at least 0, got {channels}")
        if not all(0 <= least <= most <= 1 for least, most in zip(low, high, strict=True)):
            raise ValueError(f"0 <= low <= high <= 1 must hold, got low {list(low)} and high {list(high)}")
        self.high, self.low = high, low
        try:
            x1, x2 = outline.place_exactly(2, sides)
        except ValueError as error:
            raise ValueError(f"sides: {error}") from None
        self.reads = (outline.last.name, x1.name, x2.name)
        self.stride = outline.last.stride
        inputs = channels or outline.last.channels
        width = min(channels or SIDE_WIDTH, SIDE_WIDTH)
        self.hidden = two_convolutions(outline.last.channels, channels)
        self.class_maps = ClassMaps(inputs, 0, classes)
        self.attention = make_attention(classes)
        self.first = nn.Sequential(convolution(x1.channels, width, 3), nn.ReLU(inplace=True))
        self.second = nn.Sequential(convolution(x2.channels, width, 3), nn.ReLU(inplace=True))
        self.shared = _to_one_map(width, width)
        self.third = _to_one_map(inputs, width)

    def forward(self, features: Mapping[str, Tensor], labels: Tensor | None, tail: Tail) -> LocalizerOutput:
        x, x1, x2 = (features[stage] for stage in self.reads)
        hidden = self.hidden(x)
        maps = self.attention(self.class_maps(hidden))
        extras: dict[str, Tensor] = {}
        if self.training:  # the side branches teach, and are not asked at test
            extras = {
                "b1": self.shared(self.first(x1)),
                "b2": self.shared(self.second(x2)),
                "c": self.third(hidden),
            }
        return LocalizerOutput(maps.mean(dim=(2, 3)), maps, extras)

    def loss(self, output: LocalizerOutput, targets: Targets) -> dict[str, Tensor]:
        height, width = (self.stride * cells for cells in output.maps.shape[2:])

        def enlarge(maps: Tensor) -> Tensor:
            return F.interpolate(maps, size=(height, width), mode="bilinear")[:, 0]

        b1, b2, c = (enlarge(output.extras[name]) for name in ("b1", "b2", "c"))
        sure1, sure2 = b1.detach().sigmoid(), b2.detach().sigmoid()

        def from_the_class_map(labels: Tensor) -> Tensor:
            true = select_maps(output.maps.detach(), labels)
            return guided_loss(b2, min_max(enlarge(true[:, None])), self.high[0], self.low[0])

        return {
            "classification": cross_entropy(output.logits, targets),
            "b2": weighted(from_the_class_map, targets),
            "b1": guided_loss(b1, sure2, self.high[1], self.low[1]),
            "c": guided_loss(c, (sure1 + sure2) / 2, self.high[2], self.low[2]),
        }

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        return select_maps(output.maps, labels)


def guided_loss(logits: Tensor, guide: Tensor, high: float, low: float) -> Tensor:
    """Mean binary cross-entropy over the pixels that the guide decides; 0 where it decides none.

    logits, guide: (N, H, W), the guide from 0 to 1.
    """
    with torch.no_grad():
        foreground = guide > high
        few = foreground.sum(dim=(1, 2), keepdim=True) < FEW_PIXELS
        relative = guide > SHARE_OF_MAX * guide.amax(dim=(1, 2), keepdim=True)
        background = guide < low
        foreground = torch.where(few, relative, foreground) & ~background
        decided = (foreground | background).to(logits.dtype)
    losses = F.binary_cross_entropy_with_logits(logits, foreground.to(logits.dtype), reduction="none")
    return (losses * decided).sum() / decided.sum().clamp(min=1)


def _to_one_map(inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(convolution(inputs, width, 3), nn.ReLU(inplace=True), convolution(width, 1, 1))
