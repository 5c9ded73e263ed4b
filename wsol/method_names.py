"""A config's model in words, for messages and tables."""

from __future__ import annotations

from collections.abc import Container

from wsol.config import Attention, Config

OWN_CLASS = "own class"  # of a classifier that does not know the classes of the data set

_PROPER = {
    "gradcam": "Grad-CAM",
    "gradcam++": "Grad-CAM++",
    "xgradcam": "XGrad-CAM",
    "layercam": "LayerCAM",
    "hirescam": "HiRes-CAM",
    "scorecam": "Score-CAM",
    "bagcams": "BagCAMs",
    "rollout": "attention rollout",
    "adl": "ADL",
    "dgdm": "DGDM",
    "danet": "DANet",
    "acol": "ACoL",
    "spg": "SPG",
    "has": "HaS",
    "cutmix": "CutMix",
}


def own_class_mark(config: Config, figures: Container[str]) -> str:
    """`, own class` behind the name of a classifier whose boxes are of its own best class, else nothing.

    figures: the keys of what was measured; without classes of the data set there is no `top1_cls`.
    """
    return f", {OWN_CLASS}" if config.classifier is not None and "top1_cls" not in figures else ""


def method_name(config: Config) -> str:
    """A method as papers write it: `ADL-GPCA`, `DANet`, `HaS-CAM`, `CAM-GPCA (unit)`, `DDT refined`.

    Of a network that is trained as a classifier it is the attention: `GPCA`, or `baseline`.
    """
    if config.network is not None:
        return _classifier_name(config, config.network.attention)
    if config.classifier is not None:
        method = config.classifier.method
        return _PROPER.get(method, method.upper())
    if config.refine is not None:
        return f"{config.refine.method} refined".strip()
    model = config.model
    heads = [] if model.head.name == "cam" and model.drop.name != "none" else [model.head.name]
    drops = [model.drop.name, *(tap.name for tap in model.taps)]
    parts = [*(t.name for t in config.train.transforms), *heads, *drops, model.attention.name]
    name = "-".join(_PROPER.get(part, part.upper()) for part in parts if part not in ("none", "identity"))
    return _with_reading(name, model.attention)


def _classifier_name(config: Config, attention: Attention) -> str:
    parts = [*(t.name for t in config.train.transforms), attention.name]
    named = [_PROPER.get(part, part.upper()) for part in parts if part != "identity"]
    return _with_reading("-".join(named) or "baseline", attention)


def _with_reading(name: str, attention: Attention) -> str:
    """Readings of GPCA and variants of it are different methods."""
    words = [str(attention.options[key]) for key in ("variant", "reading") if key in attention.options]
    told = [word for word in words if word not in ("full", "literal")]
    return f"{name} ({', '.join(told)})" if told else name


def network_name(config: Config) -> str:
    """The network: a backbone, or a classifier as it was named."""
    if config.network is not None:
        return config.network.name
    return config.model.backbone.name if config.classifier is None else config.classifier.name


def describe(config: Config, classes: int) -> str:
    """A model in a few words: `vgg16, adl, cam head, gpca, 200 classes`."""
    if config.network is not None:
        parts = [config.network.name, config.network.attention.name]
    else:
        model = config.model
        taps = [tap.name for tap in model.taps]
        parts = [model.backbone.name, model.drop.name, *taps, f"{model.head.name} head", model.attention.name]
    counted = f"{classes} class{'es' if classes != 1 else ''}"
    return ", ".join([p for p in parts if p not in ("none", "identity")] + [counted])
