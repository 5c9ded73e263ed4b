"""`wsol analyze`: what the channel attention of a run has learned."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "look at the channel attention: NLL of the masks, and their distribution"
DESCRIPTION = """\
Analyse the channel attention of evaluated runs, from their predictions of the test images.

  wsol analyze runs/demo
  wsol analyze runs/gpca-0 runs/gpca-1 runs/gpca-2 runs/se-0      mean and deviation over seeds
  wsol analyze runs/demo --classes 3 17 Blue_Jay

Prints the negative log-likelihood of the true class by three definitions (see docs/protocols.md)
beside the uniform ln C and the paper's table, and writes to RUN/analysis: nll.csv, and the masks'
distribution for some classes as mask_means, mask_histogram and mask_boxes, PNG and CSV.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_dirs", type=Path, nargs="+", metavar="RUN", help="evaluated run folders")
    add("--classes", nargs="+", metavar="CLASS", help="names or labels for the pictures (default: five)")
    add("--out", type=Path, metavar="DIR", help="folder for the files (default: RUN/analysis); one run only")


def run(args: argparse.Namespace) -> None:
    from wsol.api.comparing import analyze

    found = analyze(args.run_dirs, classes=args.classes, out=args.out)
    for line in found.written:
        print(line)
    print(f"\n{found}")
