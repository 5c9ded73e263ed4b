"""`wsol init`: from a folder of photos to a config."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

HELP = "look at a folder of your photos and write a config that trains on them"
DESCRIPTION = """\
Look at a folder of photos, say what is in it, and write a commented config. Then it prints the next command.

  wsol init photos/                                 writes photos.yaml
  wsol init photos/ --annotations boxes.csv --out cats.yaml

The folder has one folder for each class (photos/cat/*.jpg, photos/dog/*.jpg), and perhaps photos/train and
photos/test above them; or it is laid out like CUB-200-2011. Training needs no boxes. To measure, put a file
of true boxes into the folder: a COCO file, or a CSV table with one row for each box (paths below the folder,
boxes in pixels). Only the column `image` is needed, and the four of the box only together:

  image,label,split,x0,y0,x1,y1
  cat/1.jpg,cat,test,12,30,200,180
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("photos", type=Path, metavar="PHOTOS", help="the folder")
    add("--annotations", type=Path, metavar="FILE", help="CSV or COCO file (default: the one in the folder)")
    add("--weights", type=Path, metavar="FILE", help="of MobileNet V1 (default: downloaded once)")
    add("--out", type=Path, metavar="FILE", help="the config (default: NAME OF THE FOLDER.yaml, here)")
    add("--overwrite", action="store_true", help="replace a config that is there already")


def run(args: argparse.Namespace) -> None:
    from wsol.api.starting import init_config

    made = init_config(
        args.photos,
        args.out,
        annotations=args.annotations,
        weights=args.weights,
        overwrite=args.overwrite,
    )
    print(f"{made}\nwritten: {made.path}\nnext: wsol train {shlex.quote(str(made.path))}")
