"""A head: class maps whose logits lie between their mean and their maximum."""

import math
from collections.abc import Mapping

from torch import Tensor

from wsol.data.hierarchy import Hierarchy
from wsol.models.backbone import Outline
from wsol.models.heads.class_maps import ClassMaps, select_maps
from wsol.models.heads.head import Head, MakeAttention, Tail
from wsol.models.heads.targets import Targets, cross_entropy
from wsol.records import LocalizerOutput
from wsol.registry import HEADS


@HEADS.register("lse", "log-sum-exp pooling of class maps (Pinheiro and Collobert, 2015)")
class LSE(Head):
    """logits_c = 1/r ln(mean over (h, w) of exp(r m_c)): r near 0 is CAM's mean, a large r the maximum."""

    def __init__(
        self,
        outline: Outline,
        classes: int,
        hierarchy: Hierarchy | None,
        make_attention: MakeAttention,
        channels: int = 256,
        r: float = 1.0,
    ) -> None:
        super().__init__()
        if r <= 0:
            raise ValueError(f"r must be above 0, got {r}")
        self.reads = (outline.last.name,)
        self.class_maps = ClassMaps(outline.last.channels, channels, classes)
        self.attention = make_attention(classes)
        self.r = r

    def forward(self, features: Mapping[str, Tensor], labels: Tensor | None, tail: Tail) -> LocalizerOutput:
        maps = self.attention(self.class_maps(features[self.reads[0]]))
        flat = maps.flatten(2)
        logits = ((self.r * flat).logsumexp(dim=2) - math.log(flat.shape[2])) / self.r
        return LocalizerOutput(logits, maps, {})

    def loss(self, output: LocalizerOutput, targets: Targets) -> dict[str, Tensor]:
        return {"classification": cross_entropy(output.logits, targets)}

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        return select_maps(output.maps, labels)
