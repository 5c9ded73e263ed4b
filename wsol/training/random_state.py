"""Every random state of a training process, to save and to continue from."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import torch

from wsol.models.randomness import Random


class HasRandomModules(Protocol):
    """A model, or the training step around one with its batch transforms."""

    def random_modules(self) -> Iterable[tuple[str, Random]]: ...


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy (its global generator) and torch on all devices."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the global generator is what other libraries draw from
    torch.manual_seed(seed)


def capture(parts: HasRandomModules) -> dict[str, Any]:
    """The states as plain containers and tensors, as a checkpoint takes them."""
    version, numbers, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002
    return {
        "python": [version, list(numbers), gauss],
        "numpy": [name, np.asarray(keys).tolist(), int(position), int(has_gauss), float(cached)],
        "torch": torch.get_rng_state(),
        "cuda": [torch.cuda.get_rng_state()] if torch.cuda.is_available() else [],
        "modules": {name: module.rng_state() for name, module in parts.random_modules()},
    }


def restore(state: dict[str, Any], parts: HasRandomModules) -> None:
    """Continue from what `capture` returned. A part that was not there keeps the state it has."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, np.asarray(keys, dtype=np.uint32), *rest))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"][0])
    for name, module in parts.random_modules():
        if name in state["modules"]:
            module.set_rng_state(state["modules"][name])
