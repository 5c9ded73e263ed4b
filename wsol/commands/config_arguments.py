"""What the commands that take a config have in common: CONFIG and --set."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """CONFIG as `args.config`, every --set as one text in `args.overrides`, for `load_config`."""
    parser.add_argument("config", type=Path, metavar="CONFIG", help="YAML file; see configs/")
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="A.B=C",
        help="change one value of the config; may be repeated",
    )
