"""Runs that differ only in their seed are samples of one experiment."""

from __future__ import annotations

import json
from collections.abc import Sequence

from wsol.config_file import config_to_dict
from wsol.errors import ConfigError
from wsol.run import Run

# These keys say where and how fast a run was made. They do not change its results.
CIRCUMSTANCES = (
    *(("data", "root"), ("data", "workers"), ("train", "device"), ("train", "seed")),
    ("train", "threads"),
    ("refine", "source"),  # of a refined run: another seed of what `refine.method` names
)


def group_over_seeds(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs of each config, whatever its seed, the folder of its data and the machine, in their order."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        record = config_to_dict(run.config)
        for section, key in CIRCUMSTANCES:
            record.get(section, {}).pop(key, None)
        groups.setdefault(json.dumps(record, sort_keys=True), []).append(run)
    for members in groups.values():
        if len({run.config.train.seed for run in members}) != len(members):
            twice = ", ".join(str(run.path) for run in members)
            raise ConfigError(f"two of these runs have the same config and the same seed: {twice}")
    return list(groups.values())
