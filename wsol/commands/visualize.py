"""`wsol visualize`: evaluated images with heat and boxes, alone or several runs side by side."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

HELP = "draw heat maps and boxes on test images, for one run or several side by side"
DESCRIPTION = """\
Draw test images with the heat map, the predicted box (blue), the true box (red) and the class, its score and
the IoU. Reads what `wsol evaluate` left in the run folder; no model is loaded.

examples:
  wsol visualize runs/demo                                  the 24 worst
  wsol visualize runs/demo --pick wrong-class --num 12
  wsol visualize runs/demo --pick "Blue Jay"
  wsol visualize runs/gpca --compare runs/cam runs/se --pick random --num 8 --out figure

Writes one PNG for each image, and grid.png with all of them: with several runs one row for each image and
one column for each run. The first run picks the images.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="run folder that was evaluated")
    parser.add_argument(
        "--pick",
        default="worst",
        metavar="HOW",
        help="worst, best, random, wrong-class or the name of a class (default: worst)",
    )
    parser.add_argument("--num", type=int, default=24, metavar="N", help="how many images (default: 24)")
    parser.add_argument(
        "--compare", type=Path, nargs="+", default=[], metavar="RUN2", help="further runs, beside the first"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: RUN/overlays")
    parser.add_argument("--threshold", type=float, metavar="T", help="default: the one of the scores")
    parser.add_argument("--protocol", metavar="NAME", help="default: the run's own")
    parser.add_argument(
        "--data", type=Path, metavar="ROOT", help="where the data set lies (default: as trained)"
    )
    parser.add_argument("--overwrite", action="store_true", help="write into a folder that is not empty")


def run(args: argparse.Namespace) -> None:
    from tqdm import tqdm

    from wsol.data.photos import claim_folder
    from wsol.drawing.grid import draw_grid, in_rows
    from wsol.errors import ConfigError, DataError
    from wsol.views.picked import draw_picked
    from wsol.views.results import open_several

    if args.num < 1:
        raise ConfigError(f"--num {args.num}: at least 1")
    if args.threshold is not None and not 0 <= args.threshold < 1:
        raise ConfigError(f"--threshold {args.threshold} is outside 0 to 1")
    results = open_several([args.run_dir, *args.compare], args.protocol, args.data)
    out = args.out or args.run_dir / "overlays"
    several = len(results) > 1
    drawn = draw_picked(results, args.pick, args.num, args.threshold)
    tiles, captions, written = [], [], []
    bar = tqdm(drawn, total=args.num, unit=" images", file=sys.stderr, disable=None, leave=False)
    for number, one in enumerate(bar, start=1):
        if number == 1:
            claim_folder(out, args.overwrite)
        path = out / f"{number:03d}_{_file_part(one.name)}.png"
        single = draw_grid([one.pictures], [r.name for r in results]) if several else one.pictures[0]
        single.save(path)
        written.append(path)
        tiles.append(one.tiles)
        captions.append(f"{one.truth}   {one.name}")
    if not written:
        raise DataError(f"{args.run_dir}: no image fits --pick {args.pick}")
    if several:
        grid = draw_grid(tiles, [r.name for r in results], captions)
    else:
        grid = draw_grid(in_rows([t[0] for t in tiles]))
    grid.save(out / "grid.png")
    first = results[0]
    threshold = first.threshold if args.threshold is None else args.threshold
    print(
        f"{len(written)} images ({args.pick}; protocol {first.protocol.name}, threshold {threshold:g}): "
        f"{out / 'grid.png'} and {len(written)} single PNGs beside it"
    )


def _file_part(name: str) -> str:
    """The image's name as a part of a file name: no folders, nothing that a file system dislikes."""
    return re.sub(r"[^\w.-]+", "_", Path(name).stem)[:80]
