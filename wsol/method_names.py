"""A config's model in words, for messages and tables."""

from __future__ import annotations

from wsol.config import Config

_PROPER = {"adl": "ADL", "dgdm": "DGDM", "danet": "DANet", "acol": "ACoL", "spg": "SPG", "has": "HaS"}


def method_name(config: Config) -> str:
    """A method as papers write it: `ADL-GPCA`, `DANet`, `CAM-SE`."""
    model = config.model
    base = model.drop.name if model.drop.name != "none" else model.head.name
    name = _PROPER.get(base, base.upper())
    if model.head.name != "cam" and model.drop.name != "none":
        name = f"{_PROPER.get(model.head.name, model.head.name.upper())}-{name}"
    attention = model.attention.name
    return name if attention == "identity" else f"{name}-{attention.upper()}"


def describe(config: Config, classes: int) -> str:
    """A model in a few words: `vgg16, adl, cam head, gpca, 200 classes`."""
    model = config.model
    parts = [model.backbone.name, model.drop.name, f"{model.head.name} head", model.attention.name]
    return ", ".join([p for p in parts if p not in ("none", "identity")] + [f"{classes} classes"])
