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

ONNX has no Cholesky operator, so a model with GPCA attention can only be written as torch.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="run folder of a trained localizer")
    parser.add_argument("--format", choices=("torch", "onnx"), default="torch", help="default: torch")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="default: RUN/localizer.pt2 or RUN/localizer.onnx"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a file that exists")


def run(args: argparse.Namespace) -> None:
    from wsol.api import finder_of
    from wsol.models.export import SUFFIXES, ModelCard, export
    from wsol.run import load_run

    loaded = load_run(args.run_dir, "cpu")
    finder = finder_of(loaded)
    out = args.out or args.run_dir / f"localizer{SUFFIXES[args.format]}"
    card = ModelCard(
        classes=loaded.classes,
        view=finder.view,
        protocol=finder.protocol.name,
        threshold=finder.threshold,
        origin={"run": str(args.run_dir), "checkpoint": loaded.checkpoint.name, "epoch": loaded.epoch},
    )
    card_path = export(loaded.localizer, args.format, out, card, args.overwrite)
    print(f"{out}  ({out.stat().st_size / 1e6:.1f} MB)\n{card_path}")
