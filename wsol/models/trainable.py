"""What training asks of a model: a localizer, or a plain classifier."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from gpca import Attention, ChannelAttention, Identity
from wsol.models.heads.targets import Targets
from wsol.models.randomness import Random, seed_each
from wsol.models.weights import WeightsReport
from wsol.records import LocalizerOutput


class ClassifierOutput(NamedTuple):
    """What a plain classifier returns for a batch: logits (N, classes)."""

    logits: Tensor


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters that an optimizer treats alike, by their names in the model."""

    pretrained: bool
    bias: bool
    decay: bool  # whether weight decay applies
    names: tuple[str, ...]


class Trainable(nn.Module, ABC):
    """Images in, class scores out, and what the optimizer, the log and a resumed run must know of it.

    Shapes: images (N, 3, H, W), uint8 or float in [0, 1], RGB -> an output with logits (N, classes). Images
    are normalised here, by what the weights expect; mean and std are buffers, so they stay with the weights.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, weights: WeightsReport) -> None:
        super().__init__()
        normalisation = weights.normalisation
        self.register_buffer("mean", torch.tensor(normalisation.mean).reshape(3, 1, 1))
        self.register_buffer("std", torch.tensor(normalisation.std).reshape(3, 1, 1))
        #: What was loaded before training, what was missing and what was left over.
        self.weights_report = weights

    @property
    def knows_classes(self) -> bool:
        """Whether it tells classes apart."""
        return True

    @property
    @abstractmethod
    def pretrained(self) -> Collection[str]:
        """The names of the parameters that begin with loaded values."""

    @property
    @abstractmethod
    def attended(self) -> nn.Module:
        """The part whose channel attentions `masks` lists."""

    @abstractmethod
    def forward(self, images: Tensor, labels: Tensor | None = None) -> LocalizerOutput | ClassifierOutput:
        """labels: (N,) in training, for what depends on them; None at test, and where labels are mixed."""

    @abstractmethod
    def loss(self, output: Any, targets: Targets) -> dict[str, Tensor]:
        """The named terms whose sum training minimises.

        targets: labels (N,), or weighted pairs [(weight, labels (N,)), ...].
        """

    @abstractmethod
    def freeze(self, stage: str) -> None:
        """Hold this part and all before it still. ValueError where there is no such part."""

    @abstractmethod
    def set_epoch(self, epoch: float) -> None:
        """How far the training is, in epochs, for losses that depend on it."""

    def normalise(self, images: Tensor) -> Tensor:
        x = images.to(self.mean.dtype)
        if images.dtype == torch.uint8:
            x = x / 255
        return (x - self.mean) / self.std

    def masks(self) -> list[Tensor]:
        """The masks (N, C) of the channel attentions of `attended` in the last forward pass, in its order.

        `identity` is no attention and has none, though it keeps ones.
        """
        attentions = (m for m in self.attended.modules() if isinstance(m, ChannelAttention))
        return [a.mask for a in attentions if a.mask is not None and not isinstance(a, Identity)]

    def scalars(self) -> dict[str, float]:
        """What the attentions want followed over training: `head.attention.theta1` and the like."""
        return {
            f"{name}.{key}": value
            for name, module in self.named_modules()
            if isinstance(module, Attention)
            for key, value in module.scalars().items()
        }

    def random_modules(self) -> Iterator[tuple[str, Random]]:
        """Every module that draws from a generator of its own, with its name."""
        for name, module in self.named_modules():
            if isinstance(module, Random):
                yield name, module

    def seed(self, value: int) -> None:
        """Seed every random module, each differently and by its name, so that no other part matters."""
        seed_each(self.random_modules(), value)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Every parameter in exactly one group: pretrained or new, weight or bias, with or without decay."""
        spared = {
            f"{prefix}.{name}"
            for prefix, module in self.named_modules()
            for name in getattr(module, "no_weight_decay", ())
        }
        pretrained = frozenset(self.pretrained)
        groups: dict[tuple[bool, bool, bool], list[str]] = {}
        for name, _ in self.named_parameters():
            key = (name in pretrained, name.endswith("bias"), name not in spared)
            groups.setdefault(key, []).append(name)
        return [ParameterGroup(*key, tuple(names)) for key, names in groups.items()]
