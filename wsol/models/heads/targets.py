"""What a loss is computed against: labels, a weighted mixture of several labels for each image, or pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

LabelPairs = Sequence[tuple[float, Tensor]]
# Labels (N,), or pairs (weight, labels (N,)) whose weights add up to 1. For a guided head the labels of the
# pixels (N, H, W) of the image, uint8, each of them one of the three below.
Targets = Tensor | LabelPairs
BACKGROUND, FOREGROUND, UNDECIDED = 0, 1, 255


def weighted(loss: Callable[[Tensor], Tensor], targets: Targets) -> Tensor:
    """sum over the pairs of weight * loss(labels), for any loss that takes labels (N,).

    >>> weighted(lambda labels: labels.float().mean(), [(0.25, torch.tensor([1])), (0.75, torch.tensor([3]))])
    tensor(2.5000)
    """
    if isinstance(targets, Tensor):
        return loss(targets)
    return torch.stack([weight * loss(labels) for weight, labels in targets]).sum()


def cross_entropy(logits: Tensor, targets: Targets) -> Tensor:
    """The mean over images of -ln softmax(logits)_y, weighted over the pairs; logits (N, classes)."""
    return weighted(lambda labels: F.cross_entropy(logits, labels), targets)


def one_label(targets: Targets) -> Tensor:
    """The labels (N,), for losses that a mixture of labels makes no sense for.

    Raises:
        ValueError: the targets are weighted pairs.
    """
    if isinstance(targets, Tensor):
        return targets
    raise ValueError("this loss needs one label for each image, and got a mixture of labels")


def relabel(targets: Targets, table: Tensor) -> Targets:
    """The targets with table[label] in place of each label, e.g. the family of each species."""
    if isinstance(targets, Tensor):
        return table[targets]
    return [(weight, table[labels]) for weight, labels in targets]


def split_targets(targets: Targets, size: int) -> list[Targets]:
    """The targets of consecutive parts of the batch, `size` images each."""
    if isinstance(targets, Tensor):
        return list(targets.split(size))
    weights = [weight for weight, _ in targets]
    parts = zip(*(labels.split(size) for _, labels in targets), strict=True)
    return [list(zip(weights, part, strict=True)) for part in parts]
