"""`wsol data`: paint, unpack, check and look at data sets. Each verb is a module beside this one."""

from __future__ import annotations

import argparse

from wsol.commands.subcommands import add_subcommands

HELP = "paint, unpack, check and look at data sets"
DESCRIPTION = """\
Data sets: paint one, unpack CUB-200-2011, check what you have, look at it.

  wsol data synth OUT                  paint birds: no download, exact boxes and segmentations
  wsol data prepare ARCHIVE OUT        unpack the published CUB_200_2011.tgz safely
  wsol data check ROOT                 read every file once and list every fault
  wsol data info ROOT                  print counts and draw a contact sheet with boxes

A data set is a folder in the layout of CUB-200-2011 (images.txt and the files beside it), or your
own images with one folder for each class (ROOT/CLASS/*.jpg, or ROOT/train and ROOT/test above
that), with boxes from a CSV or COCO file if you have them.
"""

VERBS = ("synth", "prepare", "check", "info")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_subcommands(parser, VERBS, "wsol.commands.data_{}", metavar="VERB")


def run(args: argparse.Namespace) -> int | None:
    """Without a verb: say what there is."""
    args.parser.print_help()
    return 2
