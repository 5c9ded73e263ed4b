"""`wsol model`: what a config builds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsol.config import Data
    from wsol.data.hierarchy import Hierarchy

from wsol.commands.config_arguments import add_config_arguments

HELP = "print the stages, shapes, parameters and multiply-adds of what a config builds"
DESCRIPTION = """\
Build the localizer of a config and print it as a table: the stages of its backbone, the drop blocks
after them, the shapes for one image, parameters and multiply-adds, and what came of the weights.

  wsol model configs/cub/vgg16_adl_gpca.yaml
  wsol model configs/demo.yaml --classes 12
  wsol model configs/cub/vgg16_danet.yaml --classes 200 --set model.weights=none

The number of classes and their hierarchy are the data set's. With --classes no data set is needed; a head
that wants a hierarchy then gets that of the first so many species of CUB-200-2011.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)
    parser.add_argument("--classes", type=int, metavar="N", help="default: as many as the data set has")


def run(args: argparse.Namespace) -> None:
    from wsol.config_file import load_config
    from wsol.models.localizer import build_localizer
    from wsol.models.summary import summarise

    config = load_config(args.config, args.overrides)
    classes, hierarchy = _labels(config.data, args.classes)
    localizer = build_localizer(config.model, classes, hierarchy, config.data.image_size)
    print(summarise(localizer, config.data.image_size))
    print(f"\n{localizer.weights_report}")


def _labels(data: Data, classes: int | None) -> tuple[int, Hierarchy | None]:
    """How many classes there are, and the tree over them."""
    from wsol.data.hierarchy import cub_hierarchy
    from wsol.data.index import open_dataset
    from wsol.errors import DataError

    if classes is None:
        try:
            index = open_dataset(data)
        except DataError as error:
            raise DataError(f"{error}; without a data set, say how many --classes") from None
        return len(index.classes), index.hierarchy
    tree = cub_hierarchy("danet")
    species = tree.names[0]
    return classes, tree.subset(species[:classes]) if 1 < classes <= len(species) else None
