"""`wsol data synth`: paint a data set of birds."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "paint a data set of birds"
DESCRIPTION = """\
Paint a data set of birds in the layout of CUB-200-2011, with exact boxes, segmentations and a
hierarchy. Species of a family differ only in small parts, which makes localization hard in
the way it is hard on photographs. The same options and seed give the same bytes.

  wsol data synth data/birds
  wsol data synth data/birds --species 24 --train 100 --test 50 --size 224
"""


WORTH_PROCESSES = 200  # images: for fewer, starting processes takes longer than painting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("out", type=Path, metavar="OUT", help="the folder to make")
    add("--species", type=int, default=12, help="how many classes (default 12)")
    add("--train", type=int, default=40, help="training images of each (default 40)")
    add("--test", type=int, default=20, help="test images of each (default 20)")
    add("--size", type=int, default=160, help="long side in pixels (default 160)")
    add("--seed", type=int, default=0, help="default 0")


def run(args: argparse.Namespace) -> None:
    from wsol.api.data import paint_birds
    from wsol.cores import usable_cores

    images = args.species * (args.train + args.test)
    out = paint_birds(
        args.out,
        species=args.species,
        train=args.train,
        test=args.test,
        size=args.size,
        seed=args.seed,
        progress=True,
        processes=usable_cores() if images >= WORTH_PROCESSES else 1,
    )
    print(f"{out}: {images:,} images of {args.species} species; look at them with 'wsol data info {out}'")
