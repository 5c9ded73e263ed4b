"""A localizer small enough to train in a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from wsol.config import Config
from wsol.config_file import config_from_dict
from wsol.runs.ranks import Ranks

MakeConfig = Callable[..., Config]


@pytest.fixture
def make_config(birds: Path) -> MakeConfig:
    """A config of the tiny backbone at 64 px; keyword arguments change single values: `train__lr=0.1`."""

    def make(**changes: Any) -> Config:
        values: dict[str, dict[str, Any]] = {
            "data": {
                "root": str(birds),
                "image_size": 64,
                "resize": 72,
                "val_share": 0.2,
                "workers": 0,
            },
            "model": {"backbone": "tiny", "weights": "none", "head": {"name": "cam", "channels": 8}},
            "train": {"epochs": 2, "batch_size": 8, "lr": 0.02, "device": "cpu"},
        }
        for key, value in changes.items():
            section, _, name = key.partition("__")
            values[section][name] = value
        return config_from_dict(values)

    return make


@pytest.fixture
def alone() -> Ranks:
    """A single process on the CPU."""
    return Ranks(0, 1, torch.device("cpu"))
