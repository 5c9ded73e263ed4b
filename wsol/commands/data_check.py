"""`wsol data check`: read every file once and list every fault."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsol.data.check import CheckReport

HELP = "read every file once and list every fault"
DESCRIPTION = """\
Read every annotation and every image once and list every fault: malformed lines, files that are
missing, empty, cut short or no images, and images that are both in training and test. Notes stop
nothing but are worth knowing, such as grey, 16-bit, CMYK or EXIF-rotated images.
Nothing is changed. Exit code 0 without a fault, 1 with one, 2 where there is no data set.

  wsol data check data/CUB_200_2011
  wsol data check photos --annotations photos/boxes.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("root", type=Path, metavar="ROOT", help="the data set's folder")
    add("--kind", metavar="NAME", help="its layout, see 'wsol list datasets' (default: detected)")
    add("--annotations", type=Path, metavar="FILE", help="a CSV or COCO file for a folder of images")


def run(args: argparse.Namespace) -> int:
    from wsol.data.check import check_dataset

    options = {} if args.annotations is None else {"annotations": args.annotations}
    return print_check(check_dataset(args.root, args.kind, **options))


def print_check(report: CheckReport) -> int:
    """Print what a check found; returns the exit code."""
    for note in report.notes:
        print(f"note: {note}")
    for fault in report.faults:
        print(f"fault: {fault}")
    print(report.summary())
    return 1 if report.faults else 0
