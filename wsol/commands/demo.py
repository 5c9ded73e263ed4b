"""`wsol demo`: the whole story on painted birds, told with the commands that a user would type."""

from __future__ import annotations

import argparse
import itertools
import shlex
import time
from pathlib import Path

HELP = "the whole story on painted birds: data, training, numbers, pictures"
DESCRIPTION = """\
Paint a small data set of birds, check it, train a localizer on its labels alone, and show what
came out. Every step is an ordinary command, printed before it runs, so that you can repeat it.

  wsol demo                  everything into ./demo
  wsol demo --out /tmp/try   into another folder
"""

CONFIG = Path(__file__).resolve().parents[2] / "configs" / "demo.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), help="where everything goes (default: demo)"
    )


def run(args: argparse.Namespace) -> int:
    from wsol.cli import main
    from wsol.errors import ConfigError

    if not CONFIG.is_file():
        raise ConfigError(f"the demo needs {CONFIG}, which is part of the repository: run it from a clone")
    started = time.monotonic()
    run_dir = free_folder(args.out / "run")
    for command in steps(args.out, run_dir):
        print(f"\n$ wsol {shlex.join(command)}", flush=True)
        code = main(command)
        if code:
            return code
    print(f"\nthe demo took {time.monotonic() - started:.0f} s; look at:")
    found = results(args.out, run_dir)
    width = max(len(str(path)) for path, _ in found)
    for path, what in found:
        print(f"  {path!s:<{width}}  {what}")
    return 0


def free_folder(path: Path) -> Path:
    """`path`, or `path-2`, `path-3`, ...: what an earlier demo made stays."""
    numbers = itertools.count(2)
    candidate = path
    while candidate.exists():
        candidate = path.with_name(f"{path.name}-{next(numbers)}")
    return candidate


def steps(out: Path, run_dir: Path) -> list[list[str]]:
    """The commands of the demo, in order. Birds that an earlier demo painted are kept."""
    from wsol.config_file import load_config

    birds, run = str(out / "birds"), str(run_dir)
    counts = load_config(CONFIG).data.options  # how many birds the config trains on
    paint = ["data", "synth", birds, *(word for k, v in counts.items() for word in (f"--{k}", str(v)))]
    return [
        *([] if (out / "birds").exists() else [paint]),
        ["data", "check", birds],
        ["data", "info", birds, "--out", str(out / "birds.png")],
        ["train", str(CONFIG), "--set", f"data.root={birds}", "--run-dir", run],
        ["evaluate", run, "--protocol", "all"],
        ["visualize", run, "--pick", "random", "--num", "12"],
        ["report", run],
    ]


def results(out: Path, run_dir: Path) -> list[tuple[Path, str]]:
    """What the demo leaves to look at."""
    return [
        (out / "birds.png", "the painted birds with their true boxes"),
        (run_dir / "curves.png", "the training"),
        (run_dir / "overlays" / "grid.png", "found (blue) and true (red) boxes on test images"),
        (run_dir / "report.html", "everything, in a browser"),
    ]
