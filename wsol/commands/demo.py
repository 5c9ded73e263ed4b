"""`wsol demo`: everything once on painted birds, with the commands that a user would type."""

from __future__ import annotations

import argparse
import itertools
import shlex
import time
from collections.abc import Mapping
from pathlib import Path

HELP = "try everything on painted birds: data, training, numbers, pictures"
DESCRIPTION = """\
Paint a small data set of birds, check it, train a localizer on its labels alone, and show the
results. Every step is an ordinary command, printed before it runs, so that you can repeat it.

  wsol demo                  everything into ./demo
  wsol demo --fast           fewer birds and epochs: done sooner, with worse boxes
  wsol demo --out /tmp/try   into another folder
"""

CONFIG = "demo"  # one of the configs that come with wsol
FAST = {"data.train": 50, "train.epochs": 20, "model.head.start": 10}  # what `--fast` changes in it
PROTOCOLS = ("gpca", "wsoleval-v1", "wsoleval-v2", "adl", "tscam")  # without ten crops, which take long


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, default=Path("demo"), help="where everything goes (default: demo)")
    add("--fast", action="store_true", help="fewer birds and epochs")


def run(args: argparse.Namespace) -> int:
    from wsol.cli import main
    from wsol.runs.folder import RunFolder

    started = time.monotonic()
    folder = RunFolder(free_folder(args.out / "run"))
    birds = args.out / ("birds-fast" if args.fast else "birds")
    sheet = birds.with_suffix(".png")
    for command in steps(birds, sheet, folder.path, FAST if args.fast else {}):
        print(f"\n$ wsol {shlex.join(command)}", flush=True)
        code = main(command)
        if code:
            return code
    results = {
        sheet: "the painted birds with their true boxes",
        folder.curves: "the training",
        folder.overlays / "grid.png": "found (blue) and true (red) boxes on test images",
        folder.report: "everything, in a browser",
    }
    print(f"\nthe demo took {time.monotonic() - started:.0f} s; look at:")
    for path, what in results.items():
        print(f"  {path!s:<{max(len(str(p)) for p in results)}}  {what}")
    return 0


def free_folder(path: Path) -> Path:
    """`path`, or `path-2`, `path-3`, ...: what an earlier demo made stays."""
    names = itertools.chain([path], (path.with_name(f"{path.name}-{n}") for n in itertools.count(2)))
    return next(p for p in names if not p.exists())


def steps(birds: Path, sheet: Path, run_dir: Path, changes: Mapping[str, object]) -> list[list[str]]:
    """The commands of the demo, in order. Birds that are there are kept. changes: values of the config."""
    from wsol.config import Config

    counts = Config.read(CONFIG, set=changes).data.options  # how many birds the config trains on
    paint = ["data", "synth", str(birds), *(word for k, v in counts.items() for word in (f"--{k}", str(v)))]
    values, run = {"data.root": birds, **changes}, str(run_dir)
    return [
        *([] if birds.exists() else [paint]),
        ["data", "check", str(birds)],
        ["data", "info", str(birds), "--out", str(sheet)],
        ["train", CONFIG, "--run-dir", run, *(w for k, v in values.items() for w in ("--set", f"{k}={v}"))],
        ["evaluate", run, "--protocol", *PROTOCOLS],
        ["visualize", run, "--pick", "random", "--num", "12"],
        ["report", run],
    ]
