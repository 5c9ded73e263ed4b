"""`wsol doctor`: is this machine ready?"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

HELP = "check this machine: versions, threads, accelerator, OpenCV, free disk"
DESCRIPTION = """\
Print what the toolkit runs on, and warn of problems: two OpenCV packages in one
environment, a torch and torchvision that do not fit together, too little disk or shared memory.
Exit code 1 where something must be fixed first.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir", type=Path, default=Path(), help="folder whose disk is looked at (default: here)"
    )


def run(args: argparse.Namespace) -> int:
    from wsol.machine import inspect_machine
    from wsol.version import __version__

    print(f"wsol {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
    problems = 0
    for name, value, problem in inspect_machine(args.dir):
        print(f"  {name:<24}{value}")
        if problem:
            problems += 1
            print(f"  {'':<24}-> {problem}")
    print("\nready" if not problems else f"\nproblems to fix (->): {problems}")
    return 1 if problems else 0
