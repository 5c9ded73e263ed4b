"""What a head is that is fitted to features instead of being trained: no loss, no gradient, no labels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, TypeVar

from torch import Tensor

from wsol.models.heads.head import Head
from wsol.models.heads.targets import Targets
from wsol.records import LocalizerOutput

T = TypeVar("T")


def alone(part: T) -> list[T]:
    """What `gather` does in a single process."""
    return [part]


class FittedHead(Head):
    """A head whose tensors come from one pass over images: `wsol train` calls `fit` in place of its epochs.

    It knows no classes: `maps_for` gives its one map for any label, and there is a single logit, 0.

    images: how many training images the fit looks at, taken evenly; 0 for all of them.
    """

    fitted: ClassVar[bool] = True
    knows_classes: ClassVar[bool] = False

    images: int

    @abstractmethod
    def fit(
        self,
        batches: Iterable[Mapping[str, Tensor]],
        gather: Callable[[T], list[T]] = alone,
    ) -> Mapping[str, float]:
        """Set the head's tensors from the features of the stages in `reads`, batch by batch.

        gather: what all processes have, in the order of the processes (`Ranks.gather`).
        Returns figures that say how the fit went, for the log of the run.

        Raises:
            DataError: nothing can be fitted to these images.
        """

    def loss(self, output: LocalizerOutput, targets: Targets) -> dict[str, Tensor]:
        """Nothing is minimised."""
        return {}

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        """The one map, for whatever class is asked for: labels (N, *K) -> (N, *K, h, w)."""
        one = output.maps.reshape(len(output.maps), *[1] * (labels.ndim - 1), *output.maps.shape[2:])
        return one.expand(*labels.shape, *output.maps.shape[2:])
