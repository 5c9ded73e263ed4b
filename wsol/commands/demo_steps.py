"""The commands of `wsol demo`, in order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

CONFIG, SECOND = "demo", "demo_refine"  # of the configs that come with wsol
FAST = {"data.train": 50, "train.epochs": 20, "model.head.start": 10}  # what `--fast` changes in the first
PROTOCOLS = ("gpca", "wsoleval-v1", "wsoleval-v2")  # those that need no ten crops, which take long


def free_folder(path: Path) -> Path:
    """`path`, or `path-2`, `path-3`, ...: what an earlier demo made stays."""
    names = itertools.chain([path], (path.with_name(f"{path.name}-{n}") for n in itertools.count(2)))
    return next(p for p in names if not p.exists())


def steps(
    birds: Path, sheet: Path, first: Path, run_dir: Path, changes: Mapping[str, object]
) -> list[list[str]]:
    """The commands of the demo, in order. Birds that are there are kept. changes: values of the config.

    first: the run that `run_dir` refines.
    """
    from wsol.config import Config

    counts = Config.read(CONFIG, set=changes).data.options  # how many birds the config trains on
    paint = ["data", "synth", str(birds), *(word for k, v in counts.items() for word in (f"--{k}", str(v)))]
    values, start, run = {"data.root": birds, **changes}, str(first), str(run_dir)
    return [
        *([] if birds.exists() else [paint]),
        ["data", "check", str(birds)],
        ["data", "info", str(birds), "--out", str(sheet)],
        ["train", CONFIG, "--run-dir", start, *(w for k, v in values.items() for w in ("--set", f"{k}={v}"))],
        ["evaluate", start],
        ["refine", start, "--config", SECOND, "--run-dir", run],
        ["evaluate", run, "--protocol", *PROTOCOLS],
        ["visualize", run, "--pick", "random", "--num", "12"],
        ["report", run, start],
    ]
