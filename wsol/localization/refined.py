"""A refined localizer: the classes of one network, the map of another."""

from __future__ import annotations

from torch import Tensor, nn

from wsol.localization.batch import AnyLocalizer
from wsol.models.localizer import Localizer
from wsol.records import LocalizerOutput


class RefinedLocalizer(nn.Module):
    """Logits of `source`, bit for bit, and the one map of `own`, whatever class is asked for.

    source: knows the classes, and sees images of the same size. own: a localizer with a guided head.
    """

    cut = None
    knows_classes = True

    def __init__(self, own: Localizer, source: AnyLocalizer) -> None:
        super().__init__()
        self.own, self.source = own, source

    @property
    def mean(self) -> Tensor:
        return self.own.mean

    def forward(self, images: Tensor) -> LocalizerOutput:
        own: LocalizerOutput = self.own(images)
        return LocalizerOutput(self.source(images).logits, own.maps, own.extras)

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        return self.own.maps_for(output, labels)

    def masks(self) -> list[Tensor]:
        """None: the attention of the source weighs the source's maps, which are not used here."""
        return []
