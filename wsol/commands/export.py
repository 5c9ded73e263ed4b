"""`wsol export`: a trained localizer as a file that runs without this code."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "write a trained localizer as a torch.export program or as ONNX"
DESCRIPTION = """\
Write the localizer of a run as a file that runs without wsol.

examples:
  wsol export runs/demo --format torch --out demo.pt2
  wsol export runs/demo --format onnx --out demo.onnx

Input: RGB images as uint8 (batch, 3, S, S), any batch size; normalisation is inside. Outputs: logits
(batch, classes) and the raw class maps (batch, classes, h, w). A JSON file beside it names the classes, the
size S, the protocol and the threshold that turn a map into a box.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_dir", type=Path, metavar="RUN", help="run folder of a trained localizer")
    add("--format", choices=("torch", "onnx"), default="torch", help="default: torch")
    add("--out", type=Path, metavar="FILE", help="default: RUN/localizer.pt2 or RUN/localizer.onnx")
    add("--overwrite", action="store_true", help="replace a file that exists")


def run(args: argparse.Namespace) -> None:
    from wsol.api.localizing import export
    from wsol.models.export import card_of

    path = export(args.run_dir, args.out, format=args.format, overwrite=args.overwrite)
    print(f"{path}  ({path.stat().st_size / 1e6:.1f} MB)\n{card_of(path)}")
