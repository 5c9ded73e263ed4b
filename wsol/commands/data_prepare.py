"""`wsol data prepare`: unpack CUB-200-2011 or CIFAR safely and check it."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "unpack CUB-200-2011, CIFAR-10 or CIFAR-100 safely and check it"
DESCRIPTION = """\
Unpack an archive in the layout of CUB-200-2011 (a .tgz), or the published archive of CIFAR-10 or
CIFAR-100 (python version), into the new folder OUT and check it. Archives with unsafe paths, links
or absurd sizes are refused, and those of CIFAR that are not the published ones bit for bit. OUT
appears complete or not at all; if it exists already, it is only checked. Exit code 1 where the
check finds a fault.

  wsol data prepare CUB_200_2011.tgz data/CUB_200_2011
  wsol data prepare cifar-10-python.tar.gz data/cifar10
  wsol data prepare cifar-100-python.tar.gz data/cifar100
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("archive", type=Path, metavar="ARCHIVE", help="such as CUB_200_2011.tgz")
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder that the data set becomes")


def run(args: argparse.Namespace) -> int:
    from wsol.commands.data_check import print_check
    from wsol.data.archive import is_prepared, prepare
    from wsol.data.check import check_dataset
    from wsol.data.index import detect_kind

    there = is_prepared(args.out)
    out = prepare(args.archive, args.out)
    print(f"{out}: exists already, not changed" if there else f"{out}: unpacked from {args.archive}")
    return print_check(check_dataset(out, detect_kind(out)))
