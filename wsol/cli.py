"""The command line: one parser from the command modules, one place where errors become one line."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from wsol.commands import COMMANDS
from wsol.commands.subcommands import add_subcommands
from wsol.cores import wait_passively
from wsol.errors import WsolError
from wsol.notices import notes_as_lines
from wsol.plugins import load_plugins
from wsol.printable import printable
from wsol.version import __version__

DESCRIPTION = """\
Weakly supervised object localization: train a localizer from image labels alone,
measure how well it finds the object, and see the boxes.

new here?   wsol demo          paints birds, trains on them and shows the results
            wsol init PHOTOS/  looks at a folder of your photos and says what to type next
            wsol list          everything that a config can name
            wsol doctor        is this machine ready?
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser with one sub-command for each module in `wsol.commands`."""
    parser = argparse.ArgumentParser(
        prog="wsol", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"wsol {__version__}")
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this Python module first: for a pack that needs it, or for `wsol list`",
    )
    parser.set_defaults(run=_say_what_there_is, parser=parser, debug=False)
    add_subcommands(parser, COMMANDS, "wsol.commands.{}", metavar="COMMAND")
    return parser


def _say_what_there_is(args: argparse.Namespace) -> int:
    args.parser.print_help()
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0, or the exit code of the error that was printed."""
    wait_passively()  # before a command imports torch
    if isinstance(sys.stdout, io.TextIOWrapper):
        with suppress(OSError):  # of a stream that another program has changed
            sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be UTF-8
    args = build_parser().parse_args(argv)
    try:
        with notes_as_lines():
            if args.plugin:
                load_plugins(args.plugin)
            return args.run(args) or 0
    except WsolError as error:
        if args.debug:
            raise
        for detail in error.details:
            print(f"fault: {printable(detail)}", file=sys.stderr)
        print(f"wsol: error: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the program that reads our output has ended, as in `wsol list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if args.debug or error.filename is None:  # no file name: not caused by a user's file
            raise
        print(f"wsol: error: {printable(str(error.filename))}: {error.strerror}", file=sys.stderr)
        return WsolError.exit_code
    except MemoryError:
        if args.debug:
            raise
        print("wsol: error: there is not enough memory for this", file=sys.stderr)
        return WsolError.exit_code
    except KeyboardInterrupt:
        if args.debug:
            raise
        print("wsol: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
