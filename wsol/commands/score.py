"""`wsol score`: localization figures for maps that any program made."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "score maps that any program made"
DESCRIPTION = """\
Score localization maps that any program made. MAPS holds one file for each test image,
<image path>.npy as wsolevaluation names them (bird/a.jpg -> MAPS/bird/a.jpg.npy), a float array
height x width in [0, 1]. Maps are taken as they are: resized where they have another size than
the protocol's, not normalised unless you ask for it.

  wsol score --maps cams --data data/CUB_200_2011
  wsol score --maps cams --data data/CUB_200_2011 --protocol wsoleval-v2 --json out.json
  wsol score --maps raw --data data/CUB_200_2011 --protocol all --normalize minmax

The protocols adl, bas and bas-ext look at a centre crop: their maps are taken to be maps of that
crop, those of all others of the whole image.

Without class scores there are no top-1 figures: see GT-known, MaxBoxAcc, MaxBoxAccV2 and PxAP.
'wsol list protocols' says how the protocols differ.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--maps", type=Path, required=True, metavar="DIR", help="folder of <image path>.npy")
    add("--data", type=Path, required=True, metavar="ROOT", help="the data set's folder")
    add(
        "--protocol", nargs="+", default=["gpca"], metavar="NAME", help="one or more, or 'all' (default gpca)"
    )
    add("--normalize", metavar="NAME", help="minmax, max, pas or ivr (default: none)")
    add("--split", default="test", choices=("train", "val", "test"), help="default test")
    add("--kind", metavar="NAME", help="the data set's layout, see 'wsol list datasets' (default: detected)")
    add("--annotations", type=Path, metavar="FILE", help="boxes for a folder of images")
    add("--workers", type=int, metavar="N", help="processes (default: by the number of images)")
    add("--json", type=Path, metavar="FILE", help="write every figure there")


def run(args: argparse.Namespace) -> None:
    from wsol.api.scoring import score_folder
    from wsol.commands.evaluation_text import evaluation_lines
    from wsol.runs.files import write_json

    found = score_folder(
        args.maps,
        args.data,
        args.protocol,
        args.normalize,
        split=args.split,
        kind=args.kind,
        annotations=args.annotations,
        workers=args.workers,
    )
    print("\n".join(evaluation_lines(found, str(args.maps))))
    if args.json:
        write_json(args.json, found.to_json(), parents=True)
        print(f"\nwrote {args.json}")
