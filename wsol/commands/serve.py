"""`wsol serve`: a page on this machine where one drops photos."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from wsol.commands.classifier_arguments import add_classifier_arguments, chosen_classifier

HELP = "a page on this machine: drop photos, see boxes, heat, classes and scores"
DESCRIPTION = """\
Open a page in your browser on which you drop photos and see what one or several models find: boxes, heat,
classes and scores. Choose the threshold, the class and (for a plain classifier) the map method; download the
boxes as JSON, CSV or COCO. Only this machine can reach the page, and nothing is kept.

examples:
  wsol serve runs/demo
  wsol serve runs/cam runs/gpca --examples holiday/
  wsol serve --classifier timm:resnet50
  wsol serve runs/demo --classifier torchvision:resnet50 --method layercam --port 8000

End it with Ctrl-C. docs/serve.md tells more.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    runs = add("run_dirs", type=Path, nargs="+", metavar="RUN", help="run folders, shown side by side")
    add("--port", type=int, metavar="N", help="of the address (default: 7860; 0 for any that is free)")
    add(
        "--examples",
        type=Path,
        nargs="+",
        default=[],
        metavar="IMAGE|FOLDER",
        help="photos to click (default: test images of an evaluated run, or painted birds)",
    )
    add("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    add_classifier_arguments(parser, not_needed=runs)


def run(args: argparse.Namespace) -> int:
    from wsol.api.serving import PORT, serve

    classifier = chosen_classifier(args)
    server = serve(
        [*(args.run_dirs or ()), *([classifier] if classifier else ())],
        port=PORT if args.port is None else args.port,
        examples=args.examples,
        device=args.device,
    )
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # also where the shell ignores them, as for jobs behind a &
        signal.signal(number, signal.default_int_handler)
    with server:
        print(f"open {server.address} in a browser on this machine; Ctrl-C ends it", flush=True)
        try:
            server.wait()
        except KeyboardInterrupt:
            print("\nended")
    return 0
