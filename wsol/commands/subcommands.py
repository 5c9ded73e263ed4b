"""From command modules to sub-parsers: the commands of `wsol`, and the verbs of `wsol data`."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence


def add_subcommands(parser: argparse.ArgumentParser, names: Sequence[str], module: str, metavar: str) -> None:
    """One sub-parser for each name, from the module that `module` names with '{}' replaced."""
    # Suppressed, so that it does not undo the same switch given before the verb.
    debug = argparse.ArgumentParser(add_help=False)
    debug.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )
    commands = parser.add_subparsers(metavar=metavar)
    for name in names:
        command = importlib.import_module(module.format(name))
        added = commands.add_parser(
            name,
            help=command.HELP,
            description=command.DESCRIPTION,
            parents=[debug],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(run=command.run, parser=added)
        command.add_arguments(added)
