"""`wsol visualize`: evaluated images with heat and boxes, alone or several runs side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "draw heat maps and boxes on test images, for one run or several side by side"
DESCRIPTION = """\
Draw test images with the heat map, the predicted box (blue), the true box (red) and the class, its score, the
IoU and the outcome. Reads what `wsol evaluate` left in the run folder; no model is loaded.

examples:
  wsol visualize runs/demo                                  the 24 worst
  wsol visualize runs/demo --pick wrong-class --num 12
  wsol visualize runs/demo --pick "Blue Jay"
  wsol visualize runs/gpca --compare runs/cam runs/se --pick random --num 8 --out figure

Writes one PNG for each image, and grid.png with all of them: with several runs one row for each image and
one column for each run. The first run picks the images.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_dir", type=Path, metavar="RUN", help="run folder that was evaluated")
    add(
        "--pick",
        default="worst",
        metavar="HOW",
        help="worst, best, random, wrong-class or the name of a class (default: worst)",
    )
    add("--num", type=int, default=24, metavar="N", help="how many images (default: 24)")
    add("--compare", type=Path, nargs="+", default=[], metavar="RUN2", help="further runs, beside the first")
    add("--out", type=Path, metavar="DIR", help="default: RUN/overlays")
    add(
        "--threshold",
        type=float,
        metavar="T",
        help="default: the one chosen on held-out images where there is one, else the protocol's",
    )
    add("--protocol", metavar="NAME", help="default: the run's own")
    add("--data", type=Path, metavar="ROOT", help="where the data set is now (default: as trained)")
    add("--overwrite", action="store_true", help="write into a folder that is not empty")


def run(args: argparse.Namespace) -> None:
    from wsol.api.picturing import visualize

    found = visualize(
        [args.run_dir, *args.compare],
        pick=args.pick,
        num=args.num,
        protocol=args.protocol,
        threshold=args.threshold,
        out=args.out,
        data=args.data,
        overwrite=args.overwrite,
    )
    cuts = ", ".join(f"{t:g}" for t in dict.fromkeys(found.thresholds))
    print(
        f"{len(found.files)} images ({args.pick}; protocol {found.protocol}, threshold {cuts}): "
        f"{found.grid} and {len(found.files)} single PNGs beside it"
    )
