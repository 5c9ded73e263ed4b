"""A plain classifier that is trained: any network, with an attention in its blocks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpca import insert_attention
from wsol.config import Network
from wsol.errors import ConfigError
from wsol.models.classifier.network import scores_of
from wsol.models.classifier.opening import Blueprint
from wsol.models.heads.targets import Targets, cross_entropy
from wsol.models.paper_places import paper_places
from wsol.models.trainable import ClassifierOutput, Trainable
from wsol.models.weights import Loaded, Weights

PAPER = "paper"  # the value of `network.after` that stands for the places of the paper


class TrainedClassifier(Trainable):
    """Images in, class scores out, without maps.

    Shapes: images (N, 3, H, W), uint8 or float in [0, 1], RGB -> logits (N, classes).
    """

    def __init__(self, network: nn.Module, weights: Loaded) -> None:
        super().__init__(weights.report)
        self.network = network
        held = {id(p) for p in weights.parameters}
        self._pretrained = frozenset(name for name, p in self.named_parameters() if id(p) in held)

    @property
    def pretrained(self) -> frozenset[str]:
        return self._pretrained

    @property
    def attended(self) -> nn.Module:
        """The whole network: `masks` lists the attentions of all blocks."""
        return self.network

    def forward(self, images: Tensor, labels: Tensor | None = None) -> ClassifierOutput:
        return ClassifierOutput(scores_of(self.network(self.normalise(images))))

    def loss(self, output: ClassifierOutput, targets: Targets) -> dict[str, Tensor]:
        return {"classification": cross_entropy(output.logits, targets)}

    def freeze(self, stage: str) -> None:
        raise ValueError("a plain classifier has no named stages")

    def set_epoch(self, epoch: float) -> None:
        """Its loss does not depend on it."""


def build_classifier_to_train(section: Network, classes: int, image_size: int) -> TrainedClassifier:
    """The classifier that the section `network` of a config describes.

    Weights are loaded before attentions are put in, so public files load under their own names. Where a file
    is of another number of classes, the last layer stays new.

    Raises:
        ConfigError: an unknown name or option, a network that does not take such images, or a place where the
            attention cannot go.
        CheckpointError: the weights cannot be loaded.
    """
    if classes < 2:
        raise ConfigError(f"a classifier needs at least 2 classes to tell apart, got {classes}")
    made = _make(section, classes)
    network = made.network
    _check(section.name, network, classes, image_size)
    weights = Weights(section.weights, section.allow_missing, section="network").load(
        network, made.normalisation, made.public, by_classes=_last_layer(section, network, classes)
    )
    name = section.attention.name
    if name != "identity":
        try:
            after = paper_places(network) if section.after == PAPER else section.after
            example = torch.zeros(1, 3, image_size, image_size)
            insert_attention(network, name, after, example=example, **section.attention.options)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"network.attention: {name} in {section.name}: {error}") from None
    return TrainedClassifier(network.train(), weights)


def _make(section: Network, classes: int) -> Blueprint:
    try:
        made: Blueprint = section.registry.create(section.name, classes=classes, **section.options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"network: {section.name}: {error}") from error
    return made


def _check(name: str, network: nn.Module, classes: int, side: int) -> None:
    """One image through the network: it must be of a size that fits, and have one score for each class."""
    network.eval()
    try:
        with torch.no_grad():
            scores = scores_of(network(torch.zeros(1, 3, side, side)))
    except (RuntimeError, AssertionError, ValueError, IndexError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"network: {name} cannot take images of {side}x{side} pixels: {reason}") from None
    if scores.shape[1] != classes:
        raise ConfigError(f"network: {name} has {scores.shape[1]} scores, and the data set {classes} classes")


def _last_layer(section: Network, network: nn.Module, classes: int) -> frozenset[str]:
    """The tensors whose shape follows the number of classes."""
    if section.weights == "none":
        return frozenset()
    with torch.device("meta"):
        other = _make(section, classes + 1).network.state_dict()
    return frozenset(name for name, value in network.state_dict().items() if value.shape != other[name].shape)
