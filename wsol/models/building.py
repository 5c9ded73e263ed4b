"""The model that a config describes: a localizer, or a plain classifier."""

from __future__ import annotations

from wsol.config import Config
from wsol.data.hierarchy import Hierarchy
from wsol.models.localizer import build_localizer
from wsol.models.trainable import Trainable
from wsol.models.trained_classifier import build_classifier_to_train


def build_model(config: Config, classes: int, hierarchy: Hierarchy | None = None) -> Trainable:
    """What training trains. classes: how many; hierarchy: the tree over them, for heads that need one.

    Raises ConfigError and CheckpointError, as the two builders do.
    """
    size = config.data.image_size
    if config.network is not None:
        return build_classifier_to_train(config.network, classes, size)
    return build_localizer(config.model, classes, hierarchy, size)
