"""From a config's section `classifier`, or a user's own model, to a localizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from wsol.config import Classifier
from wsol.errors import ConfigError
from wsol.models.classifier.class_table import MappedClasses, OwnClass, match_classes
from wsol.models.classifier.localizer import ClassifierLocalizer, require_classes
from wsol.models.classifier.opening import SIDE, OpenedClassifier, model_digest, open_classifier
from wsol.models.weights import Normalisation
from wsol.registry import MAP_METHODS


@dataclass(frozen=True)
class BuiltClassifier:
    """A classifier's localizer, what it was made of, and the names of its classes."""

    localizer: ClassifierLocalizer
    config: Classifier
    opened: OpenedClassifier
    classes: tuple[str, ...]

    @property
    def origin(self) -> str:
        """Weights, method and layer in words: what stands for a checkpoint in predictions and scores."""
        return f"{self.opened.weights}, {self.config.method} at {self.localizer.layer}"

    @property
    def digest(self) -> str:
        return self.opened.digest or model_digest(self.opened.model)

    def with_method(self, method: str) -> BuiltClassifier:
        """The same classifier, its maps made by another method; ConfigError where that does not fit it."""
        config = replace(self.config, method=method)
        return replace(self, localizer=_localizer(config, self.opened), config=config)

    def for_classes(self, wanted: Sequence[str]) -> MappedClasses | OwnClass:
        """The localizer in the classes of a data set, or with its own best class where it lacks some."""
        labels = match_classes(wanted, self.classes, self.config.table)
        if len(labels) < len(wanted):
            return OwnClass(self.localizer, len(wanted), known=len(labels))
        return MappedClasses(self.localizer, list(labels.values()))


def build_classifier(
    config: Classifier,
    model: nn.Module | None = None,
    image_size: int | None = None,
    device: torch.device | None = None,
) -> BuiltClassifier:
    """The localizer of a config's section.

    model: the user's own, which stays where and as it is; None for the one that the section names.
    image_size: None for the network's own. device: where a named model goes.
    """
    if model is None:
        opened = open_classifier(config.name, config.weights, config.classes, config.variant)
        opened.model.to(device)
    else:
        opened = OpenedClassifier(model, config.name, config.classes, weights="a model given in Python")
    normalisation = opened.normalisation
    if config.mean is not None or config.std is not None:
        mean, std = config.mean or normalisation.mean, config.std or normalisation.std
        normalisation = Normalisation(mean, std, "as the user says")
    opened = replace(opened, normalisation=normalisation, image_size=image_size or opened.image_size or SIDE)
    localizer = _localizer(config, opened)
    return BuiltClassifier(localizer, config, opened, require_classes(opened.classes, localizer))


def _localizer(config: Classifier, opened: OpenedClassifier) -> ClassifierLocalizer:
    try:
        method = MAP_METHODS.create(config.method)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"method {config.method}: {error}") from error
    return ClassifierLocalizer(opened.model, method, config.layer, opened.normalisation, opened.image_size)
