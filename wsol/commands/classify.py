"""`wsol classify`: train a plain classifier with attention in its blocks."""

from __future__ import annotations

import argparse
from pathlib import Path

from wsol.commands.config_arguments import add_config_arguments, read_config
from wsol.commands.next_commands import evaluate_command
from wsol.commands.train import add_run_arguments

HELP = "train a plain classifier with attention in its blocks, or continue a run"
DESCRIPTION = """\
Train the classifier that the section 'network' of a config describes: the networks of the GPCA
paper's classification tables, or any of torchvision or timm, with an attention in every block.
Without CONFIG it paints birds and tells them apart at 32 pixels.

  wsol classify                                              painted birds, a small ResNet with GPCA
  wsol classify --set network.attention=identity             the same network without attention
  wsol classify cifar/resnet50_gpca --set data.root=data/cifar10
                                                             the paper's recipe: see 'wsol configs'
  wsol classify cifar/resnet50_gpca --resume                 continue after a kill
  torchrun --nproc-per-node=4 -m wsol classify cifar/resnet50_gpca

CIFAR comes from its published archive: 'wsol data prepare cifar-10-python.tar.gz data/cifar10'.
'wsol evaluate RUN' prints top-1 and top-5 error, 'wsol compare' puts runs side by side. Signals,
exit codes and the run folder are those of 'wsol train'.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser, optional=True)
    parser.set_defaults(config=Path("classify"))
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> int:
    config = read_config(args)  # a mistake in it ends here, before any data is read

    from wsol.api.training import classify
    from wsol.errors import TrainingStopped
    from wsol.runs.ranks import is_main_process

    try:
        trained = classify(config, args.run_dir, resume=args.resume, progress=True, name=args.config.stem)
    except TrainingStopped as stopped:
        return stopped.exit_code  # the log has said where it stands
    if is_main_process():
        print(f"trained: {trained.path} (curves: {trained.folder.curves})")
        print(f"next: {evaluate_command(trained)}")
    return 0
