"""Configs that train in less than a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from wsol.config import Config
from wsol.config_file import config_from_dict, dump_config

MakeConfig = Callable[..., Config]

METHODS: dict[str, dict[str, Any]] = {
    "cam": {},
    "adl": {"drop": "adl", "attention": "gpca"},
    "dgdm": {"drop": "dgdm", "attention": "srp"},
    "bas": {"drop": "adl", "head": {"name": "bas", "channels": 8, "start": 0.5, "ramp": 1.0}},
    "acol": {"attention": "srp", "head": {"name": "acol", "channels": 8}},
    "spg": {"attention": "gpca", "head": {"name": "spg", "channels": 8}},
    "danet": {"head": {"name": "danet", "channels": 8, "maps_per_class": 2, "levels": ["species", "family"]}},
    "has": {"attention": "srp"},
    "cutmix": {"drop": "adl"},
}
TRANSFORMS: dict[str, list[Any]] = {
    "has": [{"name": "has", "cells": [0, 16]}],
    "cutmix": [{"name": "cutmix", "alpha": 0.7, "rate": 0.8}],
}


def tiny_config(root: Path, method: str = "cam", **changes: Any) -> Config:
    """A config of the tiny backbone at 64 px, two epochs; keywords change values: `train__lr=0.1`."""
    values: dict[str, dict[str, Any]] = {
        "data": {"root": str(root), "image_size": 64, "resize": 72, "val_share": 0.2, "workers": 0},
        "model": {
            "backbone": "tiny",
            "weights": "none",
            "head": {"name": "cam", "channels": 8},
            **METHODS[method],
        },
        "train": {"epochs": 2, "batch_size": 8, "lr": 0.02, "device": "cpu"},
    }
    if method in TRANSFORMS:
        values["train"]["transforms"] = TRANSFORMS[method]
    for key, value in changes.items():
        section, _, name = key.partition("__")
        values[section][name] = value
    return config_from_dict(values)


def write_config(path: Path, config: Config) -> Path:
    path.write_text(dump_config(config))
    return path
