"""`wsol train`: from a config to a run folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from wsol.commands.config_arguments import add_config_arguments, read_config
from wsol.commands.next_commands import evaluate_command, localize_command

HELP = "train a localizer, or continue a run"
DESCRIPTION = """\
Train the localizer that a config describes. Everything goes into a run folder: the resolved
config, versions, one row of figures per epoch, curves, and checkpoints that survive a kill.

  wsol train photos.yaml                                        a file, such as 'wsol init' writes
  wsol train cub/vgg16_adl_gpca --set data.root=/data/CUB_200_2011
                                                                one that comes with wsol: see 'wsol configs'
  wsol train cub/vgg16_adl_gpca --resume                        continue after a kill
  torchrun --nproc-per-node=4 -m wsol train cub/vgg16_adl_gpca

Ctrl-C or SIGTERM saves after the current step and ends (130, 143); a second one ends at once.
Exit code 3: the loss was no longer a number; the last checkpoint is from before that.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)
    add_run_arguments(parser)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """--run-dir and --resume."""
    parser.add_argument(
        "--run-dir", type=Path, metavar="DIR", help="default: runs/<name of the config>[-2, -3, ...]"
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue the run in the folder; begin one if it is empty"
    )


def run(args: argparse.Namespace) -> int:
    config = read_config(args)  # a mistake in it ends here, before any data is read

    from wsol.api.training import train
    from wsol.errors import TrainingStopped
    from wsol.runs.ranks import is_main_process

    try:
        trained = train(config, args.run_dir, resume=args.resume, progress=True, name=args.config.stem)
    except TrainingStopped as stopped:
        return stopped.exit_code  # the log has said where it stands
    if is_main_process():
        curves = f" (curves: {trained.folder.curves})" if trained.folder.curves.exists() else ""
        print(f"trained: {trained.path}{curves}")
        # Without a box on a test image there is nothing to measure; new photos need none.
        print(f"next: {localize_command(trained) if trained.data.boxed == 0 else evaluate_command(trained)}")
    return 0
