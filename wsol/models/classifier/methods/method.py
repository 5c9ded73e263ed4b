"""What a map method is: from one pass of a classifier to the map of any class.

A new method overrides one function: `maps`, or `combine` where it is made of features and gradients::

    @MAP_METHODS.register("mine", "what it does in a line")
    class Mine(GradientMethod):
        def combine(self, features: Tensor, gradients: Tensor, scores: Tensor) -> Tensor:
            return (features * gradients).sum(dim=1)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

import torch
from torch import Tensor

from wsol.models.classifier.network import BorrowedClassifier, Seen
from wsol.notices import note

LEAST_READ = 0.5  # share of a layer's positions with a gradient, below which maps by position are dots


class MapMethod(ABC):
    """From a pass over N images to the maps of given classes."""

    #: Whether `Seen.gradients` is used, so that the pass must keep a graph.
    needs_gradient: ClassVar[bool] = False

    @abstractmethod
    def maps(self, seen: Seen, labels: Tensor) -> Tensor:
        """labels (N, K) -> maps (N, K, h, w)."""

    def check(self, network: BorrowedClassifier, x: Tensor) -> None:  # noqa: B027
        """Raise ConfigError where the method does not fit this classifier. x: one normalised image."""

    def watch(self) -> AbstractContextManager[object]:
        """What is open during the pass, for methods that watch more than one layer. It is `Seen.watched`."""
        return nullcontext()


class GradientMethod(MapMethod):
    """relu of a combination of the features A (N, C, h, w) and the gradients G = d z_y / d A of a class y.

    G of each class costs one backward pass from the scores to the layer, for the whole batch.
    """

    needs_gradient = True
    #: Whether a position's own gradient weighs it, and not a mean over all positions.
    by_position: ClassVar[bool] = False

    @abstractmethod
    def combine(self, features: Tensor, gradients: Tensor, scores: Tensor) -> Tensor:
        """The map (N, h, w) before the relu. scores: (N,) z_y, without a graph."""

    def maps(self, seen: Seen, labels: Tensor) -> Tensor:
        scores = seen.scores.detach().gather(1, labels)
        found = [
            self.combine(seen.features, seen.gradients(own), scores[:, k])
            for k, own in enumerate(labels.unbind(dim=1))
        ]
        return torch.stack(found, dim=1).relu()

    def check(self, network: BorrowedClassifier, x: Tensor) -> None:
        """Tell the user where a method by position can find dots at most.

        A convolution of 1x1 with stride 2 behind the layer (ResNets as first published, and so Keras's) reads
        one position in four, and the gradients of the others are zero for every image.
        """
        if not self.by_position:
            return
        seen = network.see(x, gradients=True)
        gradients = seen.gradients(seen.scores.argmax(dim=1))
        read = (gradients != 0).any(dim=1).float().mean().item()
        if read < LEAST_READ:
            note(
                f"layer {network.layer}: the network reads {read:.0%} of its positions, so the maps of this "
                "method are dots and their boxes are poor; take a later layer, or the method gradcam"
            )


def weighted(features: Tensor, weights: Tensor) -> Tensor:
    """sum over c of weights_c A_c: (N, C, h, w), (N, C) -> (N, h, w)."""
    return torch.einsum("nchw,nc->nhw", features, weights)
