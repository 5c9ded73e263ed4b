"""What every head is: from feature maps to logits, class maps and losses."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol

from torch import Tensor, nn

from wsol.config import MapKind
from wsol.models.heads.targets import Targets
from wsol.records import LocalizerOutput

MakeAttention = Callable[[int], nn.Module]  # from a number of channels


class Tail(Protocol):
    """The rest of the backbone after a stage, for heads that run it a second time."""

    def __call__(self, stage: str, x: Tensor, *, taps: bool = True, detached: bool = False) -> Tensor:
        """The backbone's last output, from x in place of the output of `stage`.

        taps: with the drop blocks and attentions after the stages that run, or without them.
        detached: with the present weights held still, so that gradients reach x alone; in training, batch
            norm uses the statistics of this batch and its running ones do not move.
        """


class Head(nn.Module, ABC):
    """What sits on the backbone's features.

    Constructors take (outline, classes, hierarchy, make_attention) from the builder, and then their options:
    what is known of the backbone's stages, the number of classes, the tree over them if the data set
    has one, and a maker of attentions for so many channels. A ValueError of a constructor becomes one line
    for the user.
    """

    #: Names of the stages whose output the head reads.
    reads: tuple[str, ...]

    #: Whether `forward` looks at the labels in training. Transforms that mix labels are then refused.
    needs_labels: ClassVar[bool] = False

    #: Whether the logits are scores of the data set's classes. A head that knows no classes has one logit and
    #: one map, the same for whatever class is asked for; it is measured by GT-known localization alone.
    knows_classes: ClassVar[bool] = True

    #: Where the head itself cuts its raw map: object is map > cut, whatever threshold is asked for. None
    #: where the map has no such value of its own, so that it is normalised and cut at a threshold.
    cut: ClassVar[float | None] = None

    #: Whether it is a `FittedHead`, which `wsol train` fits in one pass.
    fitted: ClassVar[bool] = False

    #: Whether it learns from the labels of pixels (N, H, W), which come from the maps of another run, and not
    #: from the labels of images. `wsol refine` trains such heads.
    guided: ClassVar[bool] = False

    #: What the map at test is made of unless the config says it; see `wsol.models.class_ranking`.
    usual_maps: ClassVar[MapKind] = "class"

    #: How far the training is, in epochs (2.5: in the middle of the third), for losses that begin late.
    #: Training sets it before every step; it is infinite elsewhere.
    epoch: float = math.inf

    @abstractmethod
    def forward(self, features: Mapping[str, Tensor], labels: Tensor | None, tail: Tail) -> LocalizerOutput:
        """Logits and class maps from the outputs of the stages in `reads`.

        labels: (N,) in training, for the heads whose forward pass depends on them; None at test, and in
            training where a transform has mixed the labels.
        tail: the rest of the backbone after a stage.
        """

    @abstractmethod
    def loss(self, output: LocalizerOutput, targets: Targets) -> dict[str, Tensor]:
        """The named terms whose sum is minimised, each a scalar; targets: labels (N,) or weighted pairs."""

    @abstractmethod
    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        """The maps of given classes at test, each for itself.

        labels (N,) -> (N, h, w); labels (N, K) -> (N, K, h, w).
        """
