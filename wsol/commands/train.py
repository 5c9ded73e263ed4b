"""`wsol train`: from a config to a run folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from wsol.commands.config_arguments import add_config_arguments

HELP = "train a localizer, or continue a run"
DESCRIPTION = """\
Train the localizer that a config describes. Everything goes into a run folder: the resolved
config, versions, one row of figures per epoch, curves, and checkpoints that survive a kill.

  wsol train configs/demo.yaml
  wsol train configs/cub/vgg16_adl_gpca.yaml --set data.root=/data/CUB_200_2011
  wsol train configs/cub/vgg16_adl_gpca.yaml --resume           continue after a kill
  torchrun --nproc-per-node=4 -m wsol train configs/cub/vgg16_adl_gpca.yaml

Ctrl-C or SIGTERM saves after the current step and leaves (130, 143); a second one leaves at once.
Exit code 3: the loss was no longer a number; the last checkpoint is from before that.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)
    parser.add_argument(
        "--run-dir", type=Path, metavar="DIR", help="default: runs/<name of the config>[-2, -3, ...]"
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue the run in the folder; begin one if it is empty"
    )


def run(args: argparse.Namespace) -> int:
    from wsol.config_file import load_config

    config = load_config(args.config, args.overrides)  # checked whole before torch is even imported

    from wsol.runs.folder import RunFolder, default_run_dir
    from wsol.runs.history import read_csv
    from wsol.runs.ranks import Ranks
    from wsol.training.signals import StopSignal
    from wsol.training.trainer import train
    from wsol.views.curves import draw_curves

    ranks = Ranks.join(config.train.device)
    try:
        run_dir = ranks.on_main(lambda: args.run_dir or default_run_dir(args.config, args.resume))
        with StopSignal() as stop:
            code = train(config, run_dir, args.resume, ranks, stop)
    finally:
        ranks.leave()
    if ranks.is_main:
        folder = RunFolder(run_dir)
        if folder.metrics.exists():
            draw_curves(read_csv(folder.metrics), folder.curves, title=run_dir.name)
        if code == 0:
            print(f"trained: {run_dir} (curves: {folder.curves}); next: wsol evaluate {run_dir}")
    return code
