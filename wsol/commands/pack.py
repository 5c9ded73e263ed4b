"""`wsol pack`: a trained localizer as one folder to hand on."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

HELP = "write a trained localizer as one folder to share, with a model card"
DESCRIPTION = """\
Write the localizer of a run as one folder: weights (safetensors), config, classes, scores, a model card with
a picture, and the SHA-256 digest of every file. Evaluate the run first: the card shows its figures.

examples:
  wsol pack runs/demo packs/demo
  wsol pack runs/demo packs/demo --license cc-by-nc-4.0 --no-picture

The folder works wherever a run does, on any machine (docs/sharing.md):
  wsol localize packs/demo photos/ --out found
  wsol evaluate packs/demo --data ROOT
  wsol push packs/demo owner/name
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_dir", type=Path, metavar="RUN", help="run folder of a trained localizer")
    add("out", type=Path, metavar="OUT", help="the new folder")
    add("--license", metavar="ID", help="for the card: mit, cc-by-nc-4.0, ... (default: none is stated)")
    add("--no-picture", action="store_true", help="the card shows no test images: you may not publish them")
    add("--data", type=Path, metavar="ROOT", help="where the data set is now, for the picture")
    add("--overwrite", action="store_true", help="replace a pack that lies there")


def run(args: argparse.Namespace) -> None:
    from wsol.api.sharing import pack

    folder = pack(
        args.run_dir,
        args.out,
        picture=not args.no_picture,
        license=args.license,
        data=args.data,
        overwrite=args.overwrite,
    )
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        print(f"{path}  ({path.stat().st_size / 1e6:.2f} MB)")
    shown = shlex.quote(str(folder))
    print(f"next: wsol localize {shown} PHOTOS --out found, or wsol push {shown} OWNER/NAME")
