"""What every batch transform is: a random change of the training images of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from wsol.config import Transform
from wsol.models.heads.targets import LabelPairs
from wsol.models.randomness import Draws
from wsol.registry import TRANSFORMS


class BatchTransform(Draws, ABC):
    """(images, labels) -> images, [(weight, labels), ...], in training only.

    A subclass writes `transform`, and draws by `chance`, `uniform`, `integers` and `permutation` alone: they
    use a generator that the run saves and restores, so that a resumed run draws what an unbroken one would.
    All processes of a run draw alike. A constructor calls `super().__init__()`; where it takes `mean`, it
    gets the colour (R, G, B) in [0, 1] that the network sees as zero.

    A transform sees the whole batch of its process, before that is split into `train.accumulate` parts.
    """

    #: Whether an image has several labels afterwards. Heads that need the one label are then refused.
    mixes_labels: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.start_generator()

    @abstractmethod
    def transform(self, images: Tensor, labels: Tensor) -> tuple[Tensor, LabelPairs]:
        """Changed images, and pairs (weight, labels (N,)) whose weights add up to 1.

        images: (N, 3, H, W), float in [0, 1], not to be changed in place. labels: (N,).
        """


def make_transforms(
    transforms: Sequence[Transform], mean: tuple[float, float, float]
) -> tuple[BatchTransform, ...]:
    """The transforms of a config; their generators are to be seeded by the caller."""
    made: list[BatchTransform] = []
    for component in transforms:
        offered = TRANSFORMS.taken(component.name, {"mean": mean})
        made.append(TRANSFORMS.create(component.name, **offered, **component.options))
    return tuple(made)


def apply_transforms(
    transforms: Sequence[BatchTransform], images: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor | LabelPairs]:
    """One transform after the other. The targets are the labels as they came unless a transform mixes them.

    images: (N, 3, H, W), uint8 or float in [0, 1]; labels: (N,).
    """
    targets: Tensor | LabelPairs = labels
    if transforms and not images.is_floating_point():
        images = images.float() / 255
    for transform in transforms:
        images, pairs = transform.transform(images, labels)
        if transform.mixes_labels:
            targets = pairs
    return images, targets
