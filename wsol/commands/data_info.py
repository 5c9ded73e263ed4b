"""`wsol data info`: counts of a data set, and a contact sheet with boxes."""

from __future__ import annotations

import argparse
from pathlib import Path

from wsol.commands import data_check

HELP = "print counts and draw a contact sheet with boxes"
DESCRIPTION = """\
Print counts, sizes and the hierarchy of a data set, and draw a contact sheet with boxes.

  wsol data info data/CUB_200_2011
  wsol data info photos --annotations photos/boxes.csv --out photos.png
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    data_check.add_arguments(parser)
    parser.add_argument(
        "--out", type=Path, metavar="PNG", help="the picture (default NAME_contact_sheet.png, here)"
    )


def run(args: argparse.Namespace) -> None:
    from wsol.api.data import open_dataset
    from wsol.data.facts import describe_dataset
    from wsol.views.contact_sheet import draw_contact_sheet

    options = {} if args.annotations is None else {"annotations": args.annotations}
    index = open_dataset(args.root, args.kind, **options)
    for name, value in describe_dataset(index):
        print(f"{name:<15}{value}")
    out = args.out or Path(f"{index.root.resolve().name}_contact_sheet.png")
    print(f"contact sheet  {draw_contact_sheet(index, out)}", flush=True)
