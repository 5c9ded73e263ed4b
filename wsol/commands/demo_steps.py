"""The commands of `wsol demo`, in order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

CONFIG, SECOND = "demo", "demo_refine"  # of the configs that come with wsol
# What `--fast` changes: few species are told apart after few epochs. It leaves out the second stage, and its
# images are larger for that.
FAST = {
    "data.species": 4,
    "data.train": 110,
    "data.image_size": 128,
    "data.resize": 144,
    "train.epochs": 17,
    "model.head.start": 6,
}
PROTOCOLS = ("gpca", "wsoleval-v1", "wsoleval-v2")  # those that need no ten crops, which take long


def free_folder(path: Path) -> Path:
    """`path`, or `path-2`, `path-3`, ...: what an earlier demo made stays."""
    names = itertools.chain([path], (path.with_name(f"{path.name}-{n}") for n in itertools.count(2)))
    return next(p for p in names if not p.exists())


def steps(birds: Path, sheet: Path, first: Path, run_dir: Path, fast: bool = False) -> list[list[str]]:
    """The commands of the demo, in order. Birds that are there are kept. `run_dir` refines the run `first`.

    fast: fewer species and epochs, and one stage: then `run_dir` is that one, and there is no `first`.
    """
    from wsol.config import Config

    changes = FAST if fast else {}
    counts = Config.read(CONFIG, set=changes).data.options  # how many birds the config trains on
    paint = ["data", "synth", str(birds), *(word for k, v in counts.items() for word in (f"--{k}", str(v)))]
    start, run = str(run_dir if fast else first), str(run_dir)
    second = [["evaluate", start], ["refine", start, "--config", SECOND, "--run-dir", run]]
    return [
        *([] if birds.exists() else [paint]),
        ["data", "check", str(birds)],
        ["data", "info", str(birds), "--out", str(sheet)],
        ["train", CONFIG, "--run-dir", start, *_set({"data.root": birds, **changes})],
        *([] if fast else second),
        ["evaluate", run, "--protocol", *PROTOCOLS],
        ["visualize", run, "--pick", "random", "--num", "12"],
        ["report", *dict.fromkeys([run, start])],
    ]


def _set(values: Mapping[str, object]) -> list[str]:
    """The options that change values of a config."""
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
