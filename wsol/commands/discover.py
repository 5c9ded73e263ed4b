"""`wsol discover`: the common object of a folder of photos."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HELP = "find the common object of a folder of photos: no labels, no training"
DESCRIPTION = """\
Find what the photos of a folder have in common, by DDT on a pretrained backbone: no labels, no
training, no threshold to choose. One to two seconds for each photo on a CPU.

examples:
  wsol discover holiday/ --out found
  wsol discover birds/ --out found --per-folder                one direction for each folder below
  wsol discover birds/ --out found --weights vgg16.pth         a file in place of the download

Writes to the output folder: boxes.json, boxes.csv, boxes_coco.json, masks/, overlays/,
contact_sheet.png and directions.json. The folder appears when everything is done.

Exit code: 0 when every photo was read, 1 when some photos could not be, or when some folders have no
common object (both are named, the others are still done), 2 when nothing was found.
"""

LISTED = 20  # photos up to which each is printed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER", help="folder of photos, also in folders below it")
    add("--out", type=Path, required=True, metavar="DIR", help="folder for the results, new or empty")
    add("--backbone", default="vgg16", metavar="NAME", help="default: vgg16; see `wsol list backbones`")
    add("--weights", default="imagenet", metavar="FILE", help="its weights (default: imagenet, a download)")
    add("--size", type=int, default=448, metavar="S", help="side of the square it sees (default: 448)")
    add("--per-folder", action="store_true", help="a direction for each folder of photos, not one for all")
    add("--device", default="auto", help="auto, cpu or cuda (default: auto)")


def run(args: argparse.Namespace) -> int:
    from wsol.api.discovering import discover

    found = discover(
        args.folder,
        args.out,
        backbone=args.backbone,
        weights=args.weights,
        size=args.size,
        per_folder=args.per_folder,
        device=args.device,
    )
    for reason in found.unreadable.values():
        print(f"wsol: cannot be read: {reason}", file=sys.stderr)
    for group, reason in found.no_object.items():
        print(f"wsol: {args.folder / group}: no common object: {reason}", file=sys.stderr)
    for name in found.empty:
        print(f"{name}: the common object is not in this photo")
    for name, (_, boxes) in found.boxes.items() if len(found) <= LISTED else ():
        for one in boxes:
            print(f"{name}: box {' '.join(f'{v:.0f}' for v in one.box)}, score {one.score:.2f}")
    there = len(found) - len(found.empty)
    print(f"{there:,} objects in {len(found):,} photos: {args.out}: {', '.join(f.name for f in found.files)}")
    return 1 if found.unreadable or found.no_object else 0
