"""Heads: from feature maps to logits, class maps and losses. Here what they share, and CAM's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from wsol.data.hierarchy import Hierarchy
from wsol.models.backbone import Feature
from wsol.records import LocalizerOutput
from wsol.registry import HEADS

MakeAttention = Callable[[int], nn.Module]  # from a number of channels


class Head(nn.Module, ABC):
    """What sits on the backbone's features.

    Constructors take (features, classes, hierarchy, make_attention) from the builder, and then their options:
    the stages that hierarchical heads may read (the last one is the backbone's output), the number of
    classes, the tree over them if the data set has one, and a maker of attentions for so many channels.
    """

    #: Names of the stages whose output the head reads.
    reads: tuple[str, ...]

    @abstractmethod
    def forward(self, features: Mapping[str, Tensor], labels: Tensor | None = None) -> LocalizerOutput:
        """Logits and class maps from the outputs of the stages in `reads`.

        labels: (N,) in training, for the heads whose forward pass depends on them.
        """

    @abstractmethod
    def loss(self, output: LocalizerOutput, labels: Tensor) -> dict[str, Tensor]:
        """The named terms whose sum is minimised, each a scalar; labels (N,)."""

    @abstractmethod
    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        """The maps at test of given classes: labels (N,) -> (N, h, w), labels (N, K) -> (N, K, h, w)."""


class ClassMaps(nn.Sequential):
    """conv3x3, ReLU, conv3x3, ReLU, conv1x1: features to one map per output.

    Xavier-uniform weights and zero biases; neither BatchNorm nor dropout.

    Shapes: (N, inputs, h, w) -> (N, outputs, h, w).
    """

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, width, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1),
        )
        for layer in self:
            if isinstance(layer, nn.Conv2d) and layer.bias is not None:
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)


@HEADS.register("cam", "one map per class, then global average pooling (Zhou et al., 2016)")
class CAM(Head):
    """Class maps as the network's own output: no gradient and no second pass to see one.

        m = attention(conv1x1(relu(conv3x3(relu(conv3x3 x)))))       (N, classes, h, w)
        logits_c = mean over (h, w) of m_c                            loss: cross-entropy

    Zhou et al., "Learning Deep Features for Discriminative Localization", CVPR 2016, in the fully
    convolutional form that the GPCA paper takes from DANet.

    Args:
        channels: width of the two 3x3 convolutions.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        classes: int,
        hierarchy: Hierarchy | None,
        make_attention: MakeAttention,
        channels: int = 1024,
    ) -> None:
        super().__init__()
        check_width(channels)
        last = features[-1]
        self.reads = (last.name,)
        self.class_maps = ClassMaps(last.channels, channels, classes)
        self.attention = make_attention(classes)

    def forward(self, features: Mapping[str, Tensor], labels: Tensor | None = None) -> LocalizerOutput:
        maps = self.attention(self.class_maps(features[self.reads[0]]))
        return LocalizerOutput(maps.mean(dim=(2, 3)), maps, {})

    def loss(self, output: LocalizerOutput, labels: Tensor) -> dict[str, Tensor]:
        return {"classification": F.cross_entropy(output.logits, labels)}

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        return select_maps(output.maps, labels)


def select_maps(maps: Tensor, labels: Tensor) -> Tensor:
    """The maps of given classes.

    maps (N, C, *rest), labels (N,) -> (N, *rest); labels (N, K) -> (N, K, *rest).
    """
    index = labels.reshape(len(labels), -1)
    index = index.reshape(*index.shape, *[1] * (maps.ndim - 2)).expand(-1, -1, *maps.shape[2:])
    return maps.gather(1, index).reshape(*labels.shape, *maps.shape[2:])


def check_width(channels: int) -> None:
    if channels < 1:
        raise ValueError(f"channels must be at least 1, got {channels}")
