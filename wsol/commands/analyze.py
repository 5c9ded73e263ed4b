"""`wsol analyze`: what the channel attention of a run has learned."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "say whether the channel attention acts: spread, AUC, NLL, and figures of its masks"
DESCRIPTION = """\
Say whether the channel attention of evaluated runs acts, from their predictions of the test images.

  wsol analyze runs/demo
  wsol analyze runs/gpca-0 runs/gpca-1 runs/gpca-2 runs/se-0      mean and deviation over seeds
  wsol analyze runs/demo --classes 3 17 Blue_Jay --formats pdf

Says in words whether the mask differs between channels, knows the true class (AUC), and would
change a prediction if it were replaced by its mean. Prints the negative log-likelihood of the true
class by three definitions (see docs/protocols.md) beside the uniform ln C and the paper's table.
Writes tables and figures to RUN/analysis.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_dirs", type=Path, nargs="+", metavar="RUN", help="evaluated run folders")
    add("--classes", nargs="+", metavar="CLASS", help="names or labels for the figures (default: five)")
    add("--out", type=Path, metavar="DIR", help="folder for the files (default: RUN/analysis); one run only")
    add("--formats", nargs="+", default=["png"], metavar="FORMAT", help="of the figures: png, pdf, svg")
    add("--split", default="test", metavar="NAME", help="test, or val: the images held out of training")


def run(args: argparse.Namespace) -> None:
    from wsol.api.comparing import analyze

    print(analyze(args.run_dirs, classes=args.classes, out=args.out, formats=args.formats, split=args.split))
