"""`wsol report`: everything about one run or several, in one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "one HTML file with everything about a run, or several runs side by side"
DESCRIPTION = """\
Write one self-contained HTML file: headline figures with their protocol and the centre-box baseline, learning
curves, accuracy over thresholds and IoU, a table of classes, the attention masks, the config, and a gallery
with a threshold slider. It loads nothing from the network and can be sent by mail.

examples:
  wsol report runs/demo                           writes runs/demo/report.html
  wsol report runs/gpca runs/se runs/cam --out compare.html

Reads what `wsol evaluate` left in the run folders; no model is loaded. Several runs must have been evaluated
by the same protocol on the same images.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run_dirs", type=Path, nargs="+", metavar="RUN", help="run folders that were evaluated"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="default: report.html in the first run folder"
    )
    parser.add_argument("--protocol", metavar="NAME", help="default: the first run's own")
    parser.add_argument(
        "--images",
        type=int,
        metavar="N",
        help="at most so many in the gallery (default: as many as stay small)",
    )
    parser.add_argument(
        "--data", type=Path, metavar="ROOT", help="where the data set lies (default: as trained)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a file given by --out")


def run(args: argparse.Namespace) -> None:
    from wsol.errors import ConfigError, RunFolderError
    from wsol.views.page import render
    from wsol.views.report import build_page
    from wsol.views.results import open_several

    if args.images is not None and args.images < 0:
        raise ConfigError(f"--images {args.images}: not less than 0")
    out = args.out or args.run_dirs[0] / "report.html"
    # The report in a run folder belongs to it and is made anew; a file of the user's is not ours to replace.
    if args.out and out.exists() and not args.overwrite:
        raise RunFolderError(f"{out}: already exists; choose another --out or allow it with --overwrite")
    text = render(build_page(open_several(args.run_dirs, args.protocol, args.data), args.images))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        draft = out.with_name(f".{out.name}.part")
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
        draft.replace(out)
    except OSError as error:
        raise RunFolderError(f"{out}: could not be written: {error.strerror}") from None
    print(f"{out}  ({out.stat().st_size / 1e6:.1f} MB): open it in a browser")
