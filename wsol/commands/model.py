"""`wsol model`: what a config builds."""

from __future__ import annotations

import argparse

from wsol.commands.config_arguments import add_config_arguments, read_config
from wsol.errors import ConfigError

HELP = "print the stages, shapes, parameters and multiply-adds of what a config builds"
DESCRIPTION = """\
Build the localizer of a config and print it as a table: the stages of its backbone, what follows them, the
shapes for one image, parameters and multiply-adds, and which weights were loaded. Of a config for 'wsol
classify' the parts of the network and how many attentions are in each.

  wsol model cub/vgg16_adl_gpca
  wsol model demo --classes 12
  wsol model cifar/resnet50_gpca --classes 100
  wsol model cub/vgg16_danet --classes 200 --set model.weights=none

The number of classes and their hierarchy are the data set's. Where there is no data set yet, they are those
of CUB-200-2011; with --classes N, its first N species.

  wsol model --attentions                what every attention costs, beside the paper's table
  wsol model --attentions se gpca        these two

With --attentions no config is read: each attention is put into the paper's ResNet50 for images of 32 pixels.
Parameters and multiply-adds are what it adds; training and inference steps are measured on this machine.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser, optional=True)
    parser.add_argument("--classes", type=int, metavar="N", help="default: as many as the data set has")
    parser.add_argument("--attentions", nargs="*", metavar="NAME", help="measure attentions; all by default")
    parser.add_argument(
        "--batch-size", type=int, default=2, metavar="N", help="images in a measured step (default: 2)"
    )


def run(args: argparse.Namespace) -> None:
    if (args.config is None) == (args.attentions is None):
        raise ConfigError("name either a CONFIG or --attentions, for example: wsol model configs/demo.yaml")
    if args.attentions is not None:
        from wsol.api.costing import attention_costs

        print(attention_costs(args.attentions or None, batch_size=args.batch_size, progress=True))
        return
    config = read_config(args)

    from wsol.api.modelling import build_described
    from wsol.models.summary import summarise

    model = build_described(config, args.classes)
    print(summarise(model, config.data.image_size))
    print(f"\n{model.weights_report}")
