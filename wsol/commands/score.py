"""`wsol score`: localization figures for maps that any program made."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

HELP = "score maps that any program made"
DESCRIPTION = """\
Score localization maps that any program made. MAPS holds one file for each test image,
<image path>.npy as wsolevaluation names them (bird/a.jpg -> MAPS/bird/a.jpg.npy), a float array
height x width in [0, 1]. Maps are taken as they are: resized where they have another size than
the protocol's, not normalised unless you ask for it.

  wsol score --maps cams --data data/CUB_200_2011
  wsol score --maps cams --data data/CUB_200_2011 --protocol wsoleval-v2 --json out.json
  wsol score --maps raw --data data/CUB_200_2011 --protocol all --normalize minmax

The protocols adl and bas look at a centre crop: their maps are taken to be maps of that crop,
those of all others of the whole image.

Without class scores there are no top-1 figures: see GT-known, MaxBoxAcc, MaxBoxAccV2 and PxAP.
'wsol list protocols' says how the protocols differ.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--maps", type=Path, required=True, metavar="DIR", help="folder of <image path>.npy")
    parser.add_argument("--data", type=Path, required=True, metavar="ROOT", help="the data set's folder")
    parser.add_argument(
        "--protocol", nargs="+", default=["gpca"], metavar="NAME", help="one or more, or 'all' (default gpca)"
    )
    parser.add_argument("--normalize", metavar="NAME", help="minmax, max, pas or ivr (default: none)")
    parser.add_argument("--split", default="test", choices=("train", "val", "test"), help="default test")
    parser.add_argument("--kind", metavar="NAME", help="of 'wsol list datasets' (default: detected)")
    parser.add_argument("--annotations", type=Path, metavar="FILE", help="boxes for a folder of images")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: what is worth it)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")


def run(args: argparse.Namespace) -> None:
    from wsol.data.faults import Faults
    from wsol.data.index import read_dataset
    from wsol.errors import ConfigError, DataError
    from wsol.scoring.blocks import choose_workers
    from wsol.scoring.map_folder import MapFolder
    from wsol.scoring.metrics import score
    from wsol.scoring.protocols import VIEWS, find_protocols
    from wsol.scoring.tables import error_table, summary_table, threshold_table, write_json

    changed = [name for name in args.protocol if "+" in name]
    if changed:
        raise ConfigError(
            f"--protocol {changed[0]}: a normalisation comes by --normalize here, for all of them"
        )
    protocols = find_protocols(args.protocol, args.normalize)
    if args.normalize is None:
        protocols = [p.for_given_maps() for p in protocols]
    index = read_dataset(args.data, Faults(), args.kind, annotations=args.annotations)
    folder = MapFolder.open(args.maps, index, args.split, "resize")
    faults, constant = folder.check(index, any_range=args.normalize is not None)
    for fault in faults:
        print(f"fault: {fault}", file=sys.stderr)
    if faults:
        raise DataError(f"{args.maps}: {len(faults)} faults, listed above; nothing was scored")
    if not any(s.boxes for s in folder.samples):
        raise DataError(f"{index.root}: no {args.split} image has a box: nothing to score against")

    results: dict[str, Any] = {}
    for view in VIEWS:
        wanted = [p for p in protocols if p.view == view]
        if wanted:
            source = MapFolder.open(args.maps, index, args.split, view)
            results |= score(source, wanted, workers=args.workers or choose_workers(len(source)))
    results = {p.name: results[p.name] for p in protocols}
    shared = {
        "num_images": len(folder),
        "split": args.split,
        "data": str(index.root),
        "data_digest": index.digest(),
        "maps": str(args.maps),
        "images_without_boxes": sum(not s.boxes for s in folder.samples),
        "constant_maps": constant,
        "unreadable_images": folder.unreadable_images(),
    }
    print(
        f"{len(folder):,} {args.split} images of {index.root}, maps in {args.maps}; all figures in percent\n"
    )
    print(summary_table(results), threshold_table(results), error_table(results), sep="\n\n")
    cropped = [p.name for p in protocols if p.view == "crop"]
    if cropped:
        print(f"\n{', '.join(cropped)}: the maps are taken to be of the centre crop")
    if shared["images_without_boxes"]:
        print(f"\nimages without boxes: {shared['images_without_boxes']:,}, each of them a miss")
    for what in ("constant_maps", "unreadable_images"):
        if shared[what]:
            print(f"\n{what.replace('_', ' ')}: {len(shared[what])}, counted as they score")
    if args.json:
        # One protocol stands at the top level; several stand by name.
        body = next(iter(results.values())) if len(results) == 1 else {"protocols": results}
        write_json(args.json, shared | body)
        print(f"\nwrote {args.json}")
