"""`wsol refine`: a light network that learns from the maps of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from wsol.commands.next_commands import evaluate_command, localize_command

HELP = "train a light network on the maps of a run: better boxes, the same classes"
DESCRIPTION = """\
Train a light foreground network on the maps of another run: of a trained localizer, of a plain
classifier, of DDT, or on the masks that 'wsol discover' wrote. No box takes part. The result is a
run like any other, with the classes of the run that it refines.

  wsol refine runs/cam                                    into runs/cam-refined
  wsol refine runs/resnet50-layercam --run-dir runs/fine  the maps of a plain classifier
  wsol refine runs/ddt --config cub40/mobilenet_v1_refine another config than 'refine'
  wsol refine found                                       what 'wsol discover --out found' wrote
  wsol refine runs/cam --resume                           continue after a kill

The data set, its split and the size of the images are those of RUN. Ctrl-C or SIGTERM saves after the
current step and ends (130, 143).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("source", type=Path, metavar="RUN|FOLDER", help="run folder, or the results of 'wsol discover'")
    add("--run-dir", type=Path, metavar="DIR", help="default: runs/<name of RUN>-refined[-2, -3, ...]")
    add("--config", type=Path, default=Path("refine"), metavar="CONFIG", help="default: the shipped 'refine'")
    change = "change one value of the config; may be repeated"
    add("--set", dest="overrides", action="append", default=[], metavar="A.B=C", help=change)
    add("--resume", action="store_true", help="continue the run in the folder; begin one if it is empty")


def run(args: argparse.Namespace) -> int:
    from wsol.api.refining import refining_config
    from wsol.api.training import train
    from wsol.errors import TrainingStopped
    from wsol.runs.ranks import is_main_process

    config = refining_config(args.source, args.config, overrides=tuple(args.overrides))
    name = f"{args.source.resolve().name}-refined"
    try:
        refined = train(config, args.run_dir, resume=args.resume, progress=True, name=name)
    except TrainingStopped as stopped:
        return stopped.exit_code  # the log has said where it stands
    if is_main_process():
        print(f"refined: {refined.path}")
        print(f"next: {localize_command(refined) if refined.data.boxed == 0 else evaluate_command(refined)}")
    return 0
