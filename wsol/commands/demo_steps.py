"""The commands of `wsol demo`, in order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

CONFIG, SECOND = "demo", "demo_refine"  # of the configs that come with wsol
# What `--fast` changes in the first, and in the second.
FAST = {"data.train": 40, "train.epochs": 12, "model.head.start": 5}
FAST_SECOND = {"train.epochs": 5}
PROTOCOLS = ("gpca", "wsoleval-v1", "wsoleval-v2")  # those that need no ten crops, which take long


def free_folder(path: Path) -> Path:
    """`path`, or `path-2`, `path-3`, ...: what an earlier demo made stays."""
    names = itertools.chain([path], (path.with_name(f"{path.name}-{n}") for n in itertools.count(2)))
    return next(p for p in names if not p.exists())


def steps(birds: Path, sheet: Path, first: Path, run_dir: Path, fast: bool = False) -> list[list[str]]:
    """The commands of the demo, in order. Birds that are there are kept. `run_dir` refines the run `first`.

    fast: fewer birds and epochs.
    """
    from wsol.config import Config

    changes, later = (FAST, FAST_SECOND) if fast else ({}, {})
    counts = Config.read(CONFIG, set=changes).data.options  # how many birds the config trains on
    paint = ["data", "synth", str(birds), *(word for k, v in counts.items() for word in (f"--{k}", str(v)))]
    start, run = str(first), str(run_dir)
    return [
        *([] if birds.exists() else [paint]),
        ["data", "check", str(birds)],
        ["data", "info", str(birds), "--out", str(sheet)],
        ["train", CONFIG, "--run-dir", start, *_set({"data.root": birds, **changes})],
        ["evaluate", start],
        ["refine", start, "--config", SECOND, "--run-dir", run, *_set(later)],
        ["evaluate", run, "--protocol", *PROTOCOLS],
        ["visualize", run, "--pick", "random", "--num", "12"],
        ["report", run, start],
    ]


def _set(values: Mapping[str, object]) -> list[str]:
    """The options that change values of a config."""
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
