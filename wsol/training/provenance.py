"""Where a run comes from: its config, data, first weights, plugins and versions.

Written at the start of a run, compared when it is continued, and compared between its processes.
"""

from __future__ import annotations

import hashlib
import importlib.metadata as metadata
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from typing import Any

import torch

from wsol.config import Config
from wsol.config_file import config_to_dict, dump_config, load_config
from wsol.config_types import shown
from wsol.data.record import DataRecord
from wsol.errors import CheckpointError, ConfigError, DataError, RunFolderError
from wsol.plugins import loaded
from wsol.runs.folder import RunFolder
from wsol.runs.ranks import Ranks
from wsol.version import __version__

PACKAGES = ("torch", "torchvision", "timm", "numpy", "opencv-python-headless", "albumentations", "pillow")

# What may change between a run and its continuation: where things are, how long and how it runs.
FREE = (
    "data.root",
    "data.workers",
    "refine.source",  # its maps are in the run
    "train.epochs",
    "train.device",
    "train.validate_every",
    "train.checkpoint_every",
)


def require_same_config(config: Config, ranks: Ranks) -> None:
    """Raise on every rank where the processes of a run have different configs or plugins."""
    own = {**config_to_dict(config), "plugin files": {p["module"]: p["sha256"] for p in loaded()}}
    digest = hashlib.sha256(json.dumps(own, sort_keys=True, default=str).encode()).hexdigest()
    if len(set(ranks.gather(digest))) == 1:
        return
    everyone = ranks.gather(own)
    rank = next(r for r, other in enumerate(everyone) if other != everyone[0])
    changes = [
        f"{key} is {shown(main)} on rank 0, {shown(other)} on rank {rank}"
        for key, main, other in _differences(everyone[0], everyone[rank])
    ]
    raise ConfigError(
        f"the processes of this run were started with different configs: {_first(changes)}; "
        "start all of them with the same"
    )


def write_provenance(
    folder: RunFolder, config: Config, data: DataRecord, weights: dict[str, Any], ranks: Ranks
) -> None:
    """At the start of a run: its config, its data, its first weights, its plugins, what it runs on."""
    folder.write(folder.config, dump_config(config))
    folder.write_json(folder.data, data.to_json())
    folder.write_json(folder.weights, weights)
    plugins = loaded()
    if plugins:
        folder.write_json(folder.plugins, {"plugins": plugins})
    folder.write_json(folder.versions, _versions(ranks))


def renew_provenance(folder: RunFolder, config: Config, ranks: Ranks) -> list[str]:
    """At a continuation: the config as it is now, and what it runs on, under `resumed`.

    Returns what will make the continued run differ from one that was never stopped, in words.
    """
    now = _versions(ranks)
    first = folder.read_json(folder.versions) if folder.versions.exists() else now
    before = [first, *first.get("resumed", [])][-1]
    notes = _changed_plugins(folder)
    threads = before.get("threads", now["threads"])
    if threads != now["threads"]:
        notes.append(f"{threads} threads before, {now['threads']} now: not the same bit for bit")
    folder.write(folder.config, dump_config(config))
    folder.write_json(folder.versions, {**first, "resumed": [*first.get("resumed", []), now]})
    return notes


def _changed_plugins(folder: RunFolder) -> list[str]:
    """The plugins whose file is not the one that the run began with."""
    if not folder.plugins.exists():
        return []
    try:
        before = {p["module"]: p["sha256"] for p in folder.read_json(folder.plugins)["plugins"]}
    except (KeyError, TypeError):
        raise RunFolderError(f"{folder.plugins}: not what a run writes") from None
    return [
        f"the plugin {p['module']} ({p['file']}) has changed since the run began"
        for p in loaded()
        if before.get(p["module"], p["sha256"]) != p["sha256"]
    ]


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


def check_same_run(folder: RunFolder, config: Config, data: DataRecord, weights: dict[str, Any]) -> None:
    """Refuse to continue a run with other data, or with a config that would have led to other weights."""
    former = load_config(folder.config, of_run=True)
    differences = list(_differences(config_to_dict(former), config_to_dict(config)))
    was, now = folder.read_json(folder.weights).get("sha256"), weights["sha256"]
    # A weights file may have moved: its content is what counts.
    free = (*FREE, "model.weights", "network.weights") if was == now else FREE
    changed = [f"{key} was {shown(a)}, is {shown(b)}" for key, a, b in differences if key not in free]
    if changed:
        raise ConfigError(
            f"{folder.path}: --resume with another config than the run's: {_first(changed)}; "
            "use the run's own, or begin a new run"
        )
    if was != now:
        source = (config.network or config.model).weights
        raise CheckpointError(
            f"{source}: these are not the weights that {folder.path} began with: their SHA-256 "
            f"was {str(was)[:12]}, is {str(now)[:12]}; put the former file back, or begin a new run"
        )
    trained_on = DataRecord.read(folder)
    if (trained_on.digest, trained_on.counts) != (data.digest, data.counts):
        raise DataError(
            f"{folder.path}: --resume with other data than the run's: {config.data.root} has {_shown(data)}, "
            f"the run had {_shown(trained_on)}"
        )


def _first(changes: list[str], most: int = 4) -> str:
    more = f" and {len(changes) - most} more" if len(changes) > most else ""
    return "; ".join(changes[:most]) + more


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
