"""`wsol data`: paint, unpack, check and look at data sets."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsol.data.check import CheckReport
    from wsol.records import DataIndex

HELP = "paint, unpack, check and look at data sets"
DESCRIPTION = """\
Data sets: paint one, unpack CUB-200-2011, check what you have, look at it.

  wsol data synth OUT                  paint birds: no download, exact boxes and masks
  wsol data prepare ARCHIVE OUT        unpack the published CUB_200_2011.tgz safely
  wsol data check ROOT                 read every file once and list every fault
  wsol data info ROOT                  print counts and draw a contact sheet with boxes

A data set is a folder in the layout of CUB-200-2011 (images.txt and its companions), or your
own images with one folder for each class (ROOT/CLASS/*.jpg, or ROOT/train and ROOT/test above
that), with boxes from a CSV or COCO file if you have them.
"""

SYNTH = """\
Paint a data set of birds in the layout of CUB-200-2011, with exact boxes, masks and a
hierarchy. Species of a family differ only in small parts, which makes localization hard in
the way it is hard on photographs. The same options and seed give the same bytes.

  wsol data synth data/birds
  wsol data synth data/birds --species 24 --train 100 --test 50 --size 224
"""

PREPARE = """\
Unpack an archive in the layout of CUB-200-2011 (a .tgz) into the new folder OUT and check it.
Archives with unsafe paths, links or absurd sizes are refused. OUT appears complete or not at
all; where it is there already, it is only checked. Exit code 1 where the check finds a fault.

  wsol data prepare CUB_200_2011.tgz data/CUB_200_2011
"""

CHECK = """\
Read every annotation and every image once and list every fault: malformed lines, files that are
missing, empty, cut short or no images, and images that are both in training and test. Notes are
things worth knowing that stop nobody, such as grey, 16-bit, CMYK or EXIF-rotated images.
Nothing is altered. Exit code 0 without a fault, 1 with one, 2 where there is no data set.

  wsol data check data/CUB_200_2011
  wsol data check photos --annotations photos/boxes.csv
"""

INFO = """\
Print counts, sizes and the hierarchy of a data set, and draw a contact sheet with boxes.

  wsol data info data/CUB_200_2011
  wsol data info photos --annotations photos/boxes.csv --out photos.png
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name: str, summary: str, description: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(
            name,
            help=summary,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        # Suppressed, so that it does not undo the same switch given before the verb.
        added.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
        )
        return added

    synth = verb("synth", "paint a data set of birds", SYNTH)
    synth.add_argument("out", type=Path, metavar="OUT", help="the folder to make")
    synth.add_argument("--species", type=int, default=12, help="how many classes (default 12)")
    synth.add_argument("--train", type=int, default=40, help="training images of each (default 40)")
    synth.add_argument("--test", type=int, default=20, help="test images of each (default 20)")
    synth.add_argument("--size", type=int, default=160, help="long side in pixels (default 160)")
    synth.add_argument("--seed", type=int, default=0, help="default 0")
    synth.set_defaults(verb_run=_synth)

    prepare = verb("prepare", "unpack CUB-200-2011 safely and check it", PREPARE)
    prepare.add_argument("archive", type=Path, metavar="ARCHIVE", help="such as CUB_200_2011.tgz")
    prepare.add_argument("out", type=Path, metavar="OUT", help="the folder that the data set becomes")
    prepare.set_defaults(verb_run=_prepare)

    check = verb("check", "read every file once and list every fault", CHECK)
    _add_source(check)
    check.set_defaults(verb_run=_check)

    info = verb("info", "print counts and draw a contact sheet with boxes", INFO)
    _add_source(info)
    info.add_argument(
        "--out", type=Path, metavar="PNG", help="the picture (default NAME_contact_sheet.png, here)"
    )
    info.set_defaults(verb_run=_info)


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("root", type=Path, metavar="ROOT", help="the data set's folder")
    parser.add_argument("--kind", metavar="NAME", help="of 'wsol list datasets' (default: detected)")
    parser.add_argument(
        "--annotations", type=Path, metavar="FILE", help="a CSV or COCO file for a folder of images"
    )


def run(args: argparse.Namespace) -> int | None:
    return args.verb_run(args)


def _synth(args: argparse.Namespace) -> None:
    from wsol.data.synthetic.paint import make_dataset

    out = make_dataset(
        args.out, species=args.species, train=args.train, test=args.test, size=args.size, seed=args.seed
    )
    images = args.species * (args.train + args.test)
    print(f"{out}: {images:,} images of {args.species} species; look at them with 'wsol data info {out}'")


def _prepare(args: argparse.Namespace) -> int:
    from wsol.data.archive import prepare
    from wsol.data.check import check_dataset

    there = (args.out / "images.txt").is_file()
    out = prepare(args.archive, args.out)
    print(f"{out}: already there, left as it is" if there else f"{out}: unpacked from {args.archive}")
    return _print_report(check_dataset(out, "cub"))


def _check(args: argparse.Namespace) -> int:
    from wsol.data.check import check_dataset

    return _print_report(check_dataset(args.root, args.kind, annotations=args.annotations))


def _print_report(report: CheckReport) -> int:
    for note in report.notes:
        print(f"note: {note}")
    for fault in report.faults:
        print(f"fault: {fault}")
    print(report.summary())
    return 1 if report.faults else 0


def _info(args: argparse.Namespace) -> None:
    from wsol.data.faults import Faults
    from wsol.data.index import read_dataset
    from wsol.views.contact_sheet import draw_contact_sheet

    index = read_dataset(args.root, Faults(), args.kind, annotations=args.annotations)
    for line in describe(index):
        print(line)
    out = args.out or Path(f"{index.root.resolve().name}_contact_sheet.png")
    print(f"contact sheet  {draw_contact_sheet(index, out)}", flush=True)


def describe(index: DataIndex) -> list[str]:
    """The facts of a data set, one to a line."""
    import numpy as np

    lines = [f"data set       {index.root}", f"classes        {len(index.classes):,}"]
    for split in ("train", "val", "test"):
        samples = index.split(split)
        if samples:
            each = np.bincount([s.label for s in samples], minlength=len(index.classes))
            lines.append(f"{split:<14} {len(samples):,} images, {each.min()} to {each.max()} of a class")
    sizes = np.array([s.size for s in index.samples if s.size is not None])
    if len(sizes):
        low, middle, high = sizes.min(0), np.median(sizes, 0).astype(int), sizes.max(0)
        lines.append(
            "image size     "
            + ", ".join(
                f"{word} {w} x {h}"
                for word, (w, h) in (("smallest", low), ("median", middle), ("largest", high))
            )
        )
    unread = len(index.samples) - len(sizes)
    if unread:
        lines.append(f"unreadable     {unread:,} images; 'wsol data check {index.root}' says why")
    shares = [b.area / (s.size[0] * s.size[1]) for s in index.samples if s.size for b in s.boxes]
    if shares:
        low, middle, high = np.percentile(shares, (5, 50, 95))
        lines.append(
            f"boxes          {len(shares):,}; they cover {middle:.0%} of the image in the median, "
            f"from {low:.0%} to {high:.0%} in nine of ten"
        )
    masks = sum(s.segmentation_path is not None for s in index.samples)
    if masks:
        lines.append(f"masks          {masks:,}")
    if index.hierarchy is not None:
        levels = ", ".join(f"{index.hierarchy.num(level)} {level}" for level in index.hierarchy.levels)
        lines.append(f"hierarchy      {levels}")
    lines.append(f"digest         {index.digest()[:16]}")
    return lines
