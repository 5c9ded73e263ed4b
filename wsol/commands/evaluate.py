"""`wsol evaluate`: predictions of the test images, and every figure of every protocol."""

from __future__ import annotations

import argparse
from pathlib import Path

from wsol.commands.classifier_arguments import add_classifier_arguments
from wsol.commands.measured_run import chosen_run
from wsol.commands.next_commands import localize_command, report_command

HELP = "measure a trained localizer: localization and classification, by named protocols"
DESCRIPTION = """\
Run a trained localizer over the test images and score it. Each image passes the network once for each way of
preparing it that the protocols use (resize, crop), and ten times more where a protocol ranks classes by ten
crops (danet, bas, bas-ext; only when you name them, or 'all'). The predictions stay in RUN/predictions, so
that pictures need no model. Figures go to RUN/scores.json, beside earlier ones of the same checkpoint.

  wsol evaluate runs/demo --protocol all               all protocols (default: that of the run's config)
  wsol evaluate runs/demo --split val                  to choose by: held-out images, not test images
  wsol evaluate runs/demo --reuse --normalize pas      score again, without the model
  torchrun --nproc-per-node 2 -m wsol evaluate RUN     two processes, equal figures
  wsol evaluate --classifier timm:resnet50 --data ROOT a plain classifier, into a new run folder
  wsol evaluate packs/demo --data ROOT                 a pack (wsol pack), into a new run folder

Every figure is given at three thresholds: a fixed one; the best one on held-out training images,
which uses their boxes; and the oracle, the best one on the test images themselves.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    run_dir = add("run_dir", type=Path, metavar="RUN", help="run folder; with --classifier a new one")
    add("--data", type=Path, metavar="ROOT", help="where the data set is now (default: as trained)")
    add("--protocol", nargs="+", metavar="NAME", help="one or more, or 'all' (default: the run's own)")
    add("--split", default="test", metavar="NAME", help="test, or val: the images held out of training")
    add("--normalize", metavar="NAME", help="minmax, max, pas or ivr (default: the protocol's)")
    held = "part of the training images that chooses the threshold, if the run held none out (default 0.1)"
    add("--held-out", type=float, default=0.1, metavar="SHARE", help=held)
    add("--reuse", action="store_true", help="score the predictions of an earlier evaluation")
    add("--batch", type=int, metavar="N", help="images at a time (default: as trained)")
    add("--workers", type=int, metavar="N", help="processes that score (default: by the number of images)")
    add("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    add("--out", type=Path, metavar="DIR", help="of a pack: the new run folder (default: runs/NAME)")
    add("--json", type=Path, metavar="FILE", help="write the figures there too")
    add_classifier_arguments(parser, not_needed=run_dir)


def run(args: argparse.Namespace) -> None:
    from wsol.scoring.protocols import find_protocols

    find_protocols(args.protocol or [], args.normalize)  # an unknown name ends here, before torch is imported

    from wsol.api.evaluating import evaluate
    from wsol.commands.evaluation_text import evaluation_lines
    from wsol.run import Run
    from wsol.runs.files import write_json
    from wsol.runs.ranks import is_main_process

    other, run_dir = chosen_run(args)
    found = evaluate(
        other or run_dir,
        args.protocol,
        split=args.split,
        data=args.data,
        out=run_dir if other else args.out,
        normalize=args.normalize,
        held_out=args.held_out,
        reuse=args.reuse,
        batch=args.batch,
        workers=args.workers,
        device=args.device,
    )
    if is_main_process():
        if args.json:
            write_json(args.json, found.to_json(), parents=True)
        print("\n".join(evaluation_lines(found, str(run_dir))))
        if args.split == "test":
            print(f"next: {report_command(Run(run_dir))}, or {localize_command(Run(run_dir))}")
