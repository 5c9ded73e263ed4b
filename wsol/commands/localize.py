"""`wsol localize`: boxes on new photos."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from wsol.commands.classifier_arguments import add_classifier_arguments, chosen_classifier

HELP = "find objects in new photos: overlays and boxes as JSON, CSV and COCO"
DESCRIPTION = """\
Find the object in photos that the localizer has never seen; no annotations are needed. With --classifier the
boxes come from a plain classifier that was never trained for it (docs/any-classifier.md).

examples:
  wsol localize runs/demo bird.jpg --out found
  wsol localize runs/demo holiday/ more/*.png --out found --topk 3
  wsol localize runs/demo bird.jpg --out found --class "Blue Jay"
  wsol localize --classifier timm:resnet50 holiday/ --method layercam --out found

Writes to the output folder: overlays/ (one PNG for each photo), boxes.json, boxes.csv and boxes_coco.json.
Every photo is kept as soon as it is done: after a kill, the same command goes on where it stopped.
Reads jpg, png, webp, bmp, tiff and gif; of an animation the first frame, 16 bits as 8, transparency on white.

Exit code: 0 when every photo was read, 1 when some could not be (they are named, the others are still
done), 2 when nothing could be done.
"""

LISTED = 20  # photos up to which each is printed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    run_dir = add("run_dir", type=Path, metavar="RUN", help="run folder; leave it out with --classifier")
    photos = add("photos", type=Path, nargs="+", metavar="IMAGE|FOLDER", help="photos, or folders of them")
    add("--out", type=Path, required=True, metavar="DIR", help="folder for the results")
    add("--class", dest="class_name", metavar="NAME", help="look for this class alone")
    add("--topk", type=int, default=5, metavar="K", help="classes to look for (default: 5)")
    add(
        "--threshold",
        type=float,
        metavar="T",
        help="part of the map's range that a box encloses (default: the run's own, see the docs)",
    )
    add("--overwrite", action="store_true", help="write into a folder that is not empty")
    add("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    add_classifier_arguments(parser, not_needed=photos, moved=run_dir)


def run(args: argparse.Namespace) -> int:
    from wsol.api.localizing import localize
    from wsol.class_names import display_name
    from wsol.printable import printable

    classifier = chosen_classifier(args, args.threshold)
    found = localize(
        classifier or args.run_dir,
        [args.run_dir, *(args.photos or ())] if classifier else args.photos,
        args.out,
        topk=args.topk,
        class_name=args.class_name,
        threshold=None if classifier else args.threshold,
        overwrite=args.overwrite,
        device=args.device,
    )
    for reason in found.unreadable.values():
        print(f"wsol: cannot be read: {printable(reason)}", file=sys.stderr)
    for name, (_, boxes) in found.boxes.items() if len(found) <= LISTED else ():
        box = " ".join(f"{v:.0f}" for v in boxes[0].box)
        print(printable(f"{name}: {display_name(boxes[0].name)} {boxes[0].score:.2f}, box {box}"))
    if not found:
        return 2
    total = len({*found.boxes, *found.unreadable})
    files = ", ".join(["overlays", *(f.name for f in found.files)])
    how = f"protocol {found.protocol}, threshold {found.threshold:g}"
    print(f"{len(found)} of {total} photos done ({how}): {args.out}: {files}")
    return 1 if found.unreadable else 0
