"""`wsol compare`: runs side by side, over seeds, beside what was published."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "put runs side by side, over seeds, beside what was published"
DESCRIPTION = """\
Compare evaluated runs. Runs that differ in their seed alone become one row with mean and sample
standard deviation; the best of each backbone is bold. '*' marks what differs from the first
run's row with p < 0.05 by Student's two-sided t-test: two samples with equal variances where a
method was run several times, one sample against a single published figure. Only rows of one
backbone and the same test images compete.

  wsol compare runs/adl_gpca-* runs/adl-* runs/cam-*
  wsol compare runs/adl_gpca-* --published --format latex --out table.tex
  wsol compare runs/* --threshold held_out              at thresholds that no test image chose
  wsol compare --published                              the published results alone

All runs are compared under one protocol, by default that of the first run. Published figures
come from their authors' own protocols: read them with that in mind.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dirs", type=Path, nargs="*", metavar="RUN", help="evaluated run folders")
    parser.add_argument("--published", action="store_true", help="add the published results")
    parser.add_argument("--protocol", metavar="NAME", help="default: that of the first run's config")
    parser.add_argument(
        "--threshold",
        choices=("fixed", "held_out", "oracle"),
        help="for the localization of your runs (default: the kind that the protocol itself reports)",
    )
    parser.add_argument("--format", choices=("md", "latex", "csv", "png"), default="md", help="default md")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: print; a picture: compare.png")


def run(args: argparse.Namespace) -> None:
    from wsol.errors import ConfigError
    from wsol.scoring.compare import RunScores, caption, group_runs, judge, published_rows
    from wsol.scoring.protocols import find_protocols
    from wsol.scoring.published import published_results
    from wsol.views.comparison import TEXT_FORMATS, draw

    if not args.run_dirs and not args.published:
        raise ConfigError("nothing to compare: name run folders, or ask for --published")
    runs = [RunScores.read(path) for path in args.run_dirs]
    protocol = args.protocol or (runs[0].config.eval.protocol if runs else "gpca")
    find_protocols([protocol])  # an unknown name ends here
    rows = group_runs(runs, protocol, args.threshold)
    reference = rows[0] if rows else None
    left_out = 0
    if args.published:
        results = published_results()
        shown = published_rows(results, {row.backbone for row in rows})
        rows, left_out = rows + shown, len(results) - len(shown)
    rows = judge(rows, reference)
    words = caption(rows, reference, left_out)
    if args.format == "png":
        path = args.out or Path("compare.png")
        draw(rows, path, words)
        print(f"wrote {path}")
        return
    text = TEXT_FORMATS[args.format](rows, words)
    if args.out:
        args.out.write_text(text)
        print(f"wrote {args.out}")
        return
    print(text, end="")
