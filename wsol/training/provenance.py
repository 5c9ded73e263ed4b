"""What makes a run this run: its config, its data, the versions. Written at its start, checked at resume."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import platform
import sys
import time
from collections.abc import Iterator
from typing import Any

import torch

from wsol.config import Config
from wsol.config_file import config_to_dict, load_config
from wsol.config_types import shown
from wsol.errors import ConfigError, DataError
from wsol.runs.folder import DataRecord, RunFolder
from wsol.runs.ranks import Ranks
from wsol.version import __version__

PACKAGES = ("torch", "torchvision", "timm", "numpy", "opencv-python-headless", "albumentations", "pillow")

# What may change between a run and its continuation: where things are, how long and how it runs.
FREE = (
    "data.root",
    "data.workers",
    "train.epochs",
    "train.device",
    "train.validate_every",
    "train.checkpoint_every",
)


def write_identity(
    folder: RunFolder, config: Config, data: DataRecord, weights: dict[str, Any], ranks: Ranks
) -> None:
    folder.write_config(config)
    folder.write_json(folder.data, data.to_json())
    folder.write_json(folder.weights, weights)
    write_versions(folder, ranks)


def write_versions(folder: RunFolder, ranks: Ranks) -> None:
    """What the run was begun with; of every continuation the same, in their order, under `resumed`."""
    now = _versions(ranks)
    if folder.versions.exists():
        first = folder.read_json(folder.versions)
        now = {**first, "resumed": [*first.get("resumed", []), now]}
    folder.write_json(folder.versions, now)


def _versions(ranks: Ranks) -> dict[str, Any]:
    return {
        "wsol": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: _version(name) for name in PACKAGES},
        "device": str(ranks.device),
        "device_name": torch.cuda.get_device_name() if ranks.device.type == "cuda" else platform.machine(),
        "processes": ranks.world,
        "threads": torch.get_num_threads(),
        "cpus": os.cpu_count(),
        "command": sys.argv,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def renew_identity(
    folder: RunFolder, config: Config, data: DataRecord, weights: dict[str, Any], ranks: Ranks
) -> None:
    """Check that it is the same run, then note what it continues on and with."""
    check_same_run(folder, config, data, weights)
    folder.write_config(config)
    write_versions(folder, ranks)


def check_same_run(folder: RunFolder, config: Config, data: DataRecord, weights: dict[str, Any]) -> None:
    """Refuse to continue a run with other data, or with a config that would have led to other weights."""
    former = load_config(folder.config)
    # A weights file may have moved: its content is what counts.
    same_weights = weights["sha256"] == folder.read_json(folder.weights).get("sha256")
    free = (*FREE, "model.weights") if same_weights else FREE
    changed = [
        f"{key} was {shown(old)}, is {shown(new)}"
        for key, old, new in _differences(config_to_dict(former), config_to_dict(config))
        if key not in free
    ]
    if changed:
        raise ConfigError(
            f"{folder.path}: --resume with another config than the run's: {'; '.join(changed[:4])}"
            + (f" and {len(changed) - 4} more" if len(changed) > 4 else "")
        )
    was = DataRecord.read(folder)
    if (was.digest, was.counts) != (data.digest, data.counts):
        raise DataError(
            f"{folder.path}: --resume with other data than the run's: {config.data.root} has {_shown(data)}, "
            f"the run had {_shown(was)}"
        )


def _differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}".lstrip("."))
    elif old != new:
        yield path, old, new


def _shown(data: DataRecord) -> str:
    images = ", ".join(f"{count} {split}" for split, count in data.counts.items())
    return f"{images} images of {len(data.classes)} classes (digest {data.digest[:12]})"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
