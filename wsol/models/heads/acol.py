"""ACoL's head: a second head that learns from what the first one does not look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from wsol.data.hierarchy import Hierarchy
from wsol.models.backbone import Outline
from wsol.models.heads.class_maps import ClassMaps, min_max, select_maps
from wsol.models.heads.head import Head, MakeAttention, Tail
from wsol.models.heads.targets import Targets, cross_entropy, one_label
from wsol.records import LocalizerOutput
from wsol.registry import HEADS


@HEADS.register(
    "acol", "adversarial complementary learning: a second head sees the rest (Zhang et al., 2018)"
)
class ACoL(Head):
    """Two heads of the same form on the backbone's last output x; the second one sees x without the
    area that the first one finds most discriminative.

        a = attention_a(maps_a(x))                                   the logits are the means of a
        b = attention_b(maps_b(x * 1[min-max(a_y) < threshold]))     y the true class; 1[.] has no gradient
        loss = CE(mean of a, y) + CE(mean of b, y)

    At test the map of a class c is max(min-max(a_c), min-max(b_c)), where b sees x erased for c: each
    class that is asked for costs one pass through the second head.

    Zhang et al., "Adversarial Complementary Learning for Weakly Supervised Object Localization", CVPR 2018.

    Our reading: each head has an attention of its own, and the map after the attention says what is erased.
    The min-max of a constant map is 0 everywhere, so nothing is erased.

    Args:
        threshold: x is erased where the map, stretched from 0 to 1, is at least this.
        channels: width of the two 3x3 convolutions of each head; 0 for linear ones.

    Raises:
        ValueError: `threshold` is outside 0 to 1.
    """

    needs_labels: ClassVar[bool] = True

    def __init__(
        self,
        outline: Outline,
        classes: int,
        hierarchy: Hierarchy | None,
        make_attention: MakeAttention,
        threshold: float = 0.6,
        channels: int = 1024,
    ) -> None:
        super().__init__()
        if not 0 <= threshold <= 1:
            raise ValueError(f"threshold must be from 0 to 1, got {threshold}")
        self.threshold = threshold
        self.reads = (outline.last.name,)
        self.class_maps = ClassMaps(outline.last.channels, channels, classes)
        self.second_maps = ClassMaps(outline.last.channels, channels, classes)
        self.second_attention = make_attention(classes)
        # The last of the head's attentions is the one whose mask belongs to the logits.
        self.attention = make_attention(classes)

    def forward(self, features: Mapping[str, Tensor], labels: Tensor | None, tail: Tail) -> LocalizerOutput:
        x = features[self.reads[0]]
        maps = self.attention(self.class_maps(x))
        extras = {"features": x}
        if labels is not None:
            extras["second_logits"] = self.second(x, select_maps(maps, labels)).mean(dim=(2, 3))
        return LocalizerOutput(maps.mean(dim=(2, 3)), maps, extras)

    def second(self, x: Tensor, first: Tensor) -> Tensor:
        """The second head's maps of x (N, C, h, w), erased where the maps `first` (N, h, w) are high."""
        kept = (min_max(first.detach()) < self.threshold).to(x.dtype)
        maps: Tensor = self.second_attention(self.second_maps(x * kept[:, None]))
        return maps

    def loss(self, output: LocalizerOutput, targets: Targets) -> dict[str, Tensor]:
        labels = one_label(targets)
        return {
            "classification": cross_entropy(output.logits, labels),
            "second": cross_entropy(output.extras["second_logits"], labels),
        }

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        columns = labels.reshape(len(labels), -1).unbind(dim=1)
        maps = torch.stack([self._map_of(output, column) for column in columns], dim=1)
        return maps.reshape(*labels.shape, *maps.shape[2:])

    def _map_of(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        """labels (N,) -> (N, h, w)."""
        first = select_maps(output.maps, labels)
        second = select_maps(self.second(output.extras["features"], first), labels)
        return torch.maximum(min_max(first), min_max(second))

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}"
