"""What the commands that take a config have in common: CONFIG and --set."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsol.config import Config


def add_config_arguments(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """CONFIG as `args.config`, every --set as one text in `args.overrides`, for `read_config`."""
    parser.add_argument(
        "config",
        type=Path,
        metavar="CONFIG",
        nargs="?" if optional else None,
        help="YAML file, or a name from 'wsol configs'",
    )
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="A.B=C",
        help="change one value of the config; may be repeated",
    )


def read_config(args: argparse.Namespace) -> Config:
    """The config that the arguments name, with every --set on top."""
    from wsol.config_file import load_config
    from wsol.shipped_configs import find_config

    return load_config(find_config(args.config), args.overrides)
