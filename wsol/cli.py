"""The command line: one parser from the command modules, one place where errors become one line."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence

from wsol.commands import COMMANDS
from wsol.errors import WsolError
from wsol.version import __version__

DESCRIPTION = """\
Weakly supervised object localization: train a localizer from image labels alone,
measure how well it finds the object, and see the boxes.

new here?   wsol demo          paints birds, trains on them and shows what came out
            wsol list          everything that a config can name
            wsol doctor        is this machine ready?
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser with one sub-command for each module in `wsol.commands`."""
    parser = argparse.ArgumentParser(
        prog="wsol", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"wsol {__version__}")
    debug = argparse.ArgumentParser(add_help=False)
    debug.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"wsol.commands.{name}")
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION,
            parents=[debug],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0, or the exit code of the error that was printed."""
    args = build_parser().parse_args(argv)
    try:
        return args.run(args) or 0
    except WsolError as error:
        if args.debug:
            raise
        print(f"wsol: error: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reader of our output went away, as `wsol list | head -1` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if args.debug or error.filename is None:  # without a file it is no fault of the user's files
            raise
        print(f"wsol: error: {error.filename}: {error.strerror}", file=sys.stderr)
        return WsolError.exit_code
    except KeyboardInterrupt:
        if args.debug:
            raise
        print("wsol: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
