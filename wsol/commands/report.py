"""`wsol report`: everything about one run or several, in one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "one HTML file with everything about a run, or several runs side by side"
DESCRIPTION = """\
Write one self-contained HTML file: headline figures with their protocol and the centre-box baseline, learning
curves, accuracy over thresholds and IoU, a gallery with a threshold slider, a view of each class, the
confusions that cost most, the attention and the config. It loads nothing from the network and can be sent
by mail.

examples:
  wsol report runs/demo                           writes runs/demo/report.html
  wsol report runs/gpca runs/se runs/cam --out compare.html
  wsol report runs/demo --out page/demo.html --assets page/pictures      larger pictures, as files beside it
  wsol report runs/demo --figures figures --formats pdf svg              its charts for a paper

Reads what `wsol evaluate` left in the run folders; no model is loaded. Several runs must have been evaluated
by the same protocol on the same images.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_dirs", type=Path, nargs="+", metavar="RUN", help="run folders that were evaluated")
    add("--out", type=Path, metavar="FILE", help="default: report.html in the first run folder")
    add("--protocol", metavar="NAME", help="default: the first run's own")
    add(
        "--images",
        type=int,
        metavar="N",
        help="largest number in the gallery (default: as many as keep the file small)",
    )
    add(
        "--assets",
        type=Path,
        metavar="DIR",
        help="a folder for large pictures, loaded when one is opened (default: all inside the file)",
    )
    add("--figures", type=Path, metavar="DIR", help="a folder for the charts as figures for a paper")
    add("--formats", nargs="+", default=["pdf"], metavar="FORMAT", help="of the figures: png, pdf, svg")
    add("--data", type=Path, metavar="ROOT", help="where the data set is now (default: as trained)")
    add("--overwrite", action="store_true", help="replace the file; write into folders that are not empty")


def run(args: argparse.Namespace) -> None:
    from wsol.api.picturing import report

    found = report(
        args.run_dirs,
        out=args.out,
        protocol=args.protocol,
        images=args.images,
        assets=args.assets,
        figures=args.figures,
        formats=args.formats,
        data=args.data,
        overwrite=args.overwrite,
    )
    print(f"{found.path}  ({found.path.stat().st_size / 1e6:.1f} MB): open it in a browser")
    if found.assets is not None:
        print(f"{found.assets}: its large pictures; keep the folder beside the page")
    if found.figures:
        print(f"{found.figures[0].parent}: {len(found.figures)} figures")
