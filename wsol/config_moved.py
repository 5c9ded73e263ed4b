"""Keys of former versions: configs and run folders that have them load with the same meaning."""

from __future__ import annotations

from typing import Any

from wsol.config_types import convert
from wsol.errors import ConfigError
from wsol.registry import ATTENTIONS
from wsol.yamlfile import KeyPath, Located

# In the section `train`: the former key, and the one that takes its value.
MOVED: dict[str, KeyPath] = {
    "momentum": ("optimizer", "momentum"),
    "nesterov": ("optimizer", "nesterov"),
    "head_lr": ("rates", "new"),
    "bias_lr": ("rates", "new_bias"),
}
# Former run folders state these; left out they mean the same, so that such a config equals one of today.
DEFAULTS = {"momentum": 0.9, "nesterov": False}


def move_keys(located: Located) -> Located:
    """The same values with former keys under their present names, each with the place it was given at.

    Raises:
        ConfigError: a value is given under both names, or is not a number where one is needed.
    """
    section = located.value.get("train")
    if not isinstance(section, dict) or not MOVED.keys() & section.keys():
        return located
    train: dict[str, Any] = {key: value for key, value in section.items() if key not in MOVED}
    old = {key: section[key] for key in MOVED if key in section and section[key] != DEFAULTS.get(key)}
    places = dict(located.places)
    if "head_lr" in old or "bias_lr" in old:
        # bias_lr was a multiple of head_lr; the present ones are all multiples of lr.
        factors = [
            convert(old.get(key, 1.0), float, f"{located.place(('train', key))}: train.{key}")
            for key in ("head_lr", "bias_lr")
        ]
        old["bias_lr"] = factors[0] * factors[1]
        places.setdefault(("train", "bias_lr"), located.place(("train", "head_lr")))
    for key, value in old.items():
        parent, name = MOVED[key]
        below = train.get(parent, {})
        below = {"name": below} if isinstance(below, str) else below
        place = located.place(("train", key))
        if not isinstance(below, dict) or name in below:
            raise ConfigError(
                f"{place}: train.{key} is now train.{parent}.{name}, and train.{parent} is given too "
                f"({located.place(('train', parent))}): write it there"
            )
        train[parent] = {**below, name: value}
        places[("train", parent, name)] = places.get(("train", key), place)
    return Located({**located.value, "train": train}, places)


def state_former_options(located: Located) -> Located:
    """The config of a run folder with the options stated that did not exist when it was written.

    An attention names them in `recorded_options`, so that a run keeps its meaning when a default changes.
    """
    model = located.value.get("model")
    if not isinstance(model, dict):
        return located
    known = ATTENTIONS.entries()

    def state(component: Any) -> Any:
        if not isinstance(component, dict) or component.get("name") not in known:
            return component
        return {**getattr(known[component["name"]].factory, "recorded_options", {}), **component}

    stated = dict(model)
    if "attention" in model:
        stated["attention"] = state(model["attention"])
    if isinstance(model.get("taps"), list):
        stated["taps"] = [state(tap) for tap in model["taps"]]
    return Located({**located.value, "model": stated}, located.places)
