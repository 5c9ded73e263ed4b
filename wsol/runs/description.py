"""A model in a few words."""

from __future__ import annotations

from wsol.config import Config


def describe(config: Config, classes: int) -> str:
    """A model in a few words, for messages: `vgg16, adl, cam head, gpca, 200 classes`."""
    model = config.model
    parts = [model.backbone.name, model.drop.name, f"{model.head.name} head", model.attention.name]
    return ", ".join([p for p in parts if p not in ("none", "identity")] + [f"{classes} classes"])
