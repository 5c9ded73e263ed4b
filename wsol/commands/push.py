"""`wsol push`: a pack to the Hugging Face Hub."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "put a pack on the Hugging Face Hub"
DESCRIPTION = """\
Put a pack, which `wsol pack` made, on the Hugging Face Hub. Log in first: hf auth login.

examples:
  wsol push packs/demo owner/name
  wsol push packs/demo owner/name --private

Anyone can then use it where a run is expected:
  wsol localize hf://owner/name photos/ --out found
  wsol localize hf://owner/name@REVISION photos/ --out found
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("pack", type=Path, metavar="PACK", help="folder of a pack")
    add("name", metavar="OWNER/NAME", help="the repository on the hub; it is made where there is none")
    add("--private", action="store_true", help="make a new repository private")


def run(args: argparse.Namespace) -> None:
    from wsol.api.sharing import push

    print(push(args.pack, args.name, private=args.private))
    print(f"next: wsol localize hf://{args.name} PHOTOS --out found")
