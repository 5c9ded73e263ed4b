"""CAM's head: one map per class, and their means are the logits."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from wsol.data.hierarchy import Hierarchy
from wsol.models.backbone import Outline
from wsol.models.heads.class_maps import ClassMaps, select_maps
from wsol.models.heads.head import Head, MakeAttention, Tail
from wsol.models.heads.targets import Targets, cross_entropy
from wsol.records import LocalizerOutput
from wsol.registry import HEADS


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
        outline: Outline,
        classes: int,
        hierarchy: Hierarchy | None,
        make_attention: MakeAttention,
        channels: int = 1024,
    ) -> None:
        super().__init__()
        self.reads = (outline.last.name,)
        self.class_maps = ClassMaps(outline.last.channels, channels, classes)
        self.attention = make_attention(classes)

    def forward(self, features: Mapping[str, Tensor], labels: Tensor | None, tail: Tail) -> LocalizerOutput:
        maps = self.attention(self.class_maps(features[self.reads[0]]))
        return LocalizerOutput(maps.mean(dim=(2, 3)), maps, {})

    def loss(self, output: LocalizerOutput, targets: Targets) -> dict[str, Tensor]:
        return {"classification": cross_entropy(output.logits, targets)}

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        return select_maps(output.maps, labels)
