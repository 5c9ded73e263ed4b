"""`wsol model`: what a config builds."""

from __future__ import annotations

import argparse

from wsol.commands.config_arguments import add_config_arguments, read_config

HELP = "print the stages, shapes, parameters and multiply-adds of what a config builds"
DESCRIPTION = """\
Build the localizer of a config and print it as a table: the stages of its backbone, what follows them, the
shapes for one image, parameters and multiply-adds, and which weights were loaded.

  wsol model cub/vgg16_adl_gpca
  wsol model demo --classes 12
  wsol model cub/vgg16_danet --classes 200 --set model.weights=none

The number of classes and their hierarchy are the data set's. Where there is no data set yet, they are those
of CUB-200-2011; with --classes N, its first N species.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)
    parser.add_argument("--classes", type=int, metavar="N", help="default: as many as the data set has")


def run(args: argparse.Namespace) -> None:
    config = read_config(args)

    from wsol.api.modelling import build_localizer
    from wsol.models.summary import summarise

    localizer = build_localizer(config, args.classes)
    print(summarise(localizer, config.data.image_size))
    print(f"\n{localizer.weights_report}")
