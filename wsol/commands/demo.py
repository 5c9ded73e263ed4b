"""`wsol demo`: everything once on painted birds, with the commands that a user would type."""

from __future__ import annotations

import argparse
import shlex
import shutil
import time
from pathlib import Path

from wsol.commands.demo_steps import free_folder, steps

HELP = "try everything on painted birds: data, training, numbers, pictures"
DESCRIPTION = """\
Paint a small data set of birds, check it, train a localizer on its labels alone, refine its maps,
and show the results. Every step is an ordinary command, printed before it runs, to be repeated.

  wsol demo                  everything into ./demo
  wsol demo --fast           four species and one stage: done sooner, with worse boxes
  wsol demo --out /tmp/try   into another folder
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, default=Path("demo"), help="where everything goes (default: demo)")
    add("--fast", action="store_true", help="four species, one stage")


def run(args: argparse.Namespace) -> int:
    from wsol.api.data import open_dataset
    from wsol.cli import main
    from wsol.runs.folder import RunFolder

    started = time.monotonic()
    folder, first = RunFolder(free_folder(args.out / "run")), free_folder(args.out / "first")
    birds = args.out / ("birds-fast" if args.fast else "birds")
    sheet, photo = birds.with_suffix(".png"), args.out / "bird.jpg"
    for command in steps(birds, sheet, first, folder.path, args.fast):
        print(f"\n$ wsol {shlex.join(command)}", flush=True)
        code = main(command)
        if code:
            return code
    shutil.copyfile(open_dataset(birds).split("test")[0].path, photo)
    results = {
        sheet: "the painted birds with their true boxes",
        (folder if args.fast else RunFolder(first)).curves: "the training",
        folder.overlays / "grid.png": "found (blue) and true (red) boxes on test images",
        folder.report: "everything, in a browser",
        photo: "a test image, to try the localizer on",
    }
    print(f"\nthe demo took {time.monotonic() - started:.0f} s; look at:")
    for path, what in results.items():
        print(f"  {path!s:<{max(len(str(p)) for p in results)}}  {what}")
    return 0
