"""`wsol compare`: runs side by side, over seeds, beside what was published."""

from __future__ import annotations

import argparse
from pathlib import Path

TEXTS, FIGURES = ("md", "latex", "csv"), ("png", "pdf", "svg")
HELP = "put runs side by side, over seeds, beside what was published"
DESCRIPTION = """\
Compare evaluated runs. Runs that differ only in their seed become one row with mean and sample
standard deviation; the best of each backbone is bold. '*' marks what differs from the first
run's row with p < 0.05 by Student's two-sided t-test: two samples with equal variances where a
method was run several times, one sample against a single published figure. Only rows of one
backbone and the same test images compete.

  wsol compare runs/adl_gpca-* runs/adl-* runs/cam-*
  wsol compare runs/adl_gpca-* --published --format latex --out table.tex
  wsol compare runs/* --format html --out compare.html  one page, in the style of the report
  wsol compare runs/* --format pdf                      a figure for a paper: compare.pdf
  wsol compare runs/* --threshold held_out              at thresholds that no test image chose
  wsol compare --published                              the published results alone
  wsol compare --published --backbone mobilenet_v1      those of one backbone

All runs are compared under one protocol, by default that of the first run. Published figures
come from their authors' own protocols, so compare them with care. Marks say where a threshold
or a checkpoint was chosen on the test images.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_dirs", type=Path, nargs="*", metavar="RUN", help="evaluated run folders")
    add("--published", action="store_true", help="add the published results")
    add("--backbone", nargs="+", default=(), metavar="NAME", help="published results of these only")
    add("--protocol", metavar="NAME", help="default: that of the first run's config")
    add(
        "--threshold",
        choices=("fixed", "held_out", "oracle"),
        help="for the localization of your runs (default: the kind that the protocol itself reports)",
    )
    add("--format", choices=(*TEXTS, "html", *FIGURES), default="md", help="default md")
    add("--out", type=Path, metavar="FILE", help="default: print; a page or a figure: compare.FORMAT")


def run(args: argparse.Namespace) -> None:
    from wsol.api.comparing import compare
    from wsol.errors import ConfigError
    from wsol.runs.files import write_text

    found = compare(
        args.run_dirs,
        protocol=args.protocol,
        threshold=args.threshold,
        published=args.published,
        backbones=args.backbone,
    )
    texts = {"md": found.to_markdown, "latex": found.to_latex, "csv": found.to_csv, "html": found.to_page}
    out = args.out or (None if args.format in TEXTS else Path(f"compare.{args.format}"))
    if out is None:
        print(texts[args.format](), end="")
        return
    if args.format in FIGURES:
        if out.suffix != f".{args.format}":
            raise ConfigError(f"--out {out}: the name of a {args.format} figure ends with .{args.format}")
        found.draw(out)
    else:
        write_text(out, texts[args.format](), parents=True)
    print(f"wrote {out}")
