"""`wsol configs copy`: a config of the package as a file of your own."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

HELP = "copy a config, and those that it extends, into a folder"
DESCRIPTION = """\
Copy a config that comes with wsol, and every config that it extends, so that you can change it. The copies
keep their sub-folder, their comments and their `extends:` lines.

  wsol configs copy cub/vgg16_adl_gpca          configs/cub/vgg16_adl_gpca.yaml and three more
  wsol configs copy demo my_configs             my_configs/demo.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", metavar="NAME", help="as 'wsol configs' lists it")
    add("folder", type=Path, nargs="?", default=Path("configs"), metavar="DIR", help="default: configs")
    add("--overwrite", action="store_true", help="replace files that are there already")


def run(args: argparse.Namespace) -> None:
    from wsol.shipped_configs import copy_config

    copies = copy_config(args.name, args.folder, overwrite=args.overwrite)
    for path in copies:
        print(path)
    print(f"next: change {copies[0]}, then wsol train {shlex.quote(str(copies[0]))}")
