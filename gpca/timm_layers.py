"""Layers that come from timm: imported when an attention that uses them is built, and not before."""

import importlib
from types import ModuleType

from torch import nn


def timm_module(name: str, attention: str) -> ModuleType:
    """The module `timm.layers.NAME`, whose layers the attention is made of.

    Raises:
        ImportError: timm is not installed; says how to install it.
    """
    try:
        return importlib.import_module(f"timm.layers.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "timm":
            raise
        raise ImportError(
            f"the attention {attention} takes its layers from timm, which is not installed: pip install timm",
            name="timm",
        ) from None


def adopt_layers(attention: nn.Module, source: nn.Module) -> None:
    """Take over the layers of another module under its names, so that both have the same state_dict."""
    for name, layer in source.named_children():
        attention.add_module(name, layer)


def check_ratio(ratio: int) -> None:
    if ratio < 1:
        raise ValueError(f"ratio must be at least 1, got {ratio}")
