"""`wsol localize`: boxes on new photos."""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

HELP = "find objects in new photos: overlays and boxes as JSON, CSV and COCO"
DESCRIPTION = """\
Find the object in photos that the localizer has never seen; no annotations are needed.

examples:
  wsol localize runs/demo bird.jpg --out found
  wsol localize runs/demo holiday/ more/*.png --out found --topk 3
  wsol localize runs/demo bird.jpg --out found --class "Blue Jay"

Writes to the output folder: overlays/ (one PNG for each photo), boxes.json, boxes.csv and boxes_coco.json.
Reads jpg, png, webp, bmp, tiff and gif; of an animation the first frame, 16 bits as 8, transparency on white.

Exit code: 0 when every photo was read, 1 when some could not be (they are named, the others are done all the
same), 2 when nothing could be done.
"""

LISTED = 20  # photos up to which each is printed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="run folder of a trained localizer")
    parser.add_argument(
        "photos", type=Path, nargs="+", metavar="IMAGE|FOLDER", help="photos, or folders of them"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the results")
    parser.add_argument("--class", dest="class_name", metavar="NAME", help="look for this class alone")
    parser.add_argument("--topk", type=int, default=5, metavar="K", help="classes to look for (default: 5)")
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="part of the map's range that a box encloses (default: the run's own, see the docs)",
    )
    parser.add_argument("--overwrite", action="store_true", help="write into a folder that is not empty")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")


def run(args: argparse.Namespace) -> int:
    from tqdm import tqdm

    from wsol.api import load
    from wsol.class_names import display_name
    from wsol.data.photos import batch_photos, claim_folder, list_photos, read_photos, write_boxes
    from wsol.errors import ConfigError

    if args.topk < 1:
        raise ConfigError(f"--topk {args.topk}: at least 1")
    photos, unreadable = list_photos(args.photos)
    finder = load(args.run_dir, args.threshold, args.device)
    if args.class_name is not None:
        finder.find_class(args.class_name)  # an unknown name ends here, before anything is written
    out = claim_folder(args.out, args.overwrite)

    for error in unreadable.values():
        print(f"wsol: cannot be read: {error}", file=sys.stderr)
    found = {}
    with tqdm(total=len(photos), unit=" photos", file=sys.stderr, disable=None, leave=False) as bar:
        for batch in batch_photos(photos):
            images, errors = read_photos(batch)
            for error in errors.values():
                tqdm.write(f"wsol: cannot be read: {error}", file=sys.stderr)
            unreadable |= errors
            located = finder.batch(list(images.values()), args.topk, args.class_name) if images else []
            for name, one in zip(images, located, strict=True):
                found[name] = (one.size, one.found)
                path = out / "overlays" / f"{name}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                one.overlay().save(path)
            bar.update(len(batch))

    settings = {"run": str(args.run_dir), "protocol": finder.protocol.name, "threshold": finder.threshold}
    files = write_boxes(out, found, finder.classes, settings, unreadable)
    for name, (_, boxes) in itertools.islice(found.items(), LISTED if len(found) <= LISTED else 0):
        box = " ".join(f"{v:.0f}" for v in boxes[0].box)
        print(f"{name}: {display_name(boxes[0].name)} {boxes[0].score:.2f}, box {box}")
    print(
        f"{len(found)} of {len(photos)} photos done (protocol {finder.protocol.name}, threshold "
        f"{finder.threshold:g}): {out / 'overlays'}, {', '.join(f.name for f in files)}"
    )
    return 1 if unreadable else 0
