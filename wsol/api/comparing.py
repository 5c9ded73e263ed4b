"""`wsol.compare` and `wsol.analyze`: runs side by side, and what their attention has learned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wsol.run import Run, Split
from wsol.scoring.metrics import Kind
from wsol.views.analysis import Analysis, analyze_runs
from wsol.views.compare import Comparison, compare_runs

Runs = Run | Path | str | Sequence[Run | Path | str]


def as_runs(runs: Runs, data: Path | str | None = None) -> list[Run]:
    """One run or several, given as runs or as their folders. data: where the data set is now."""
    several = [runs] if isinstance(runs, (Run, Path, str)) else runs
    return [Run(r.path if isinstance(r, Run) else r, data) for r in several]


def compare(
    runs: Runs = (),
    *,
    protocol: str | None = None,
    threshold: Kind | None = None,
    published: bool = False,
    backbones: Sequence[str] = (),
) -> Comparison:
    """Evaluated runs in one table, with the published results if you ask for them.

    Runs that differ only in their seed become one row with mean and sample standard deviation. A star marks
    what differs from the first row by Student's t-test.

    Args:
        runs: one run or several, or their folders.
        protocol: by default that of the first run's config.
        threshold: `fixed`, `held_out` or `oracle`; by default the kind that the protocol itself reports.
        published: add the published results.
        backbones: of these backbones only; by default those of the runs, or all where there are no runs.

    >>> import wsol
    >>> print(wsol.compare(["runs/demo", "runs/other"]).to_csv().splitlines()[0][:20])
    backbone,method,from
    """
    return compare_runs(as_runs(runs), protocol, threshold, published, backbones)


def analyze(
    runs: Runs,
    *,
    classes: Sequence[str] | None = None,
    out: Path | str | None = None,
    formats: Sequence[str] = ("png",),
    split: Split = "test",
) -> Analysis:
    """Whether the channel attention of evaluated runs acts: in words, figures and pictures of its masks.

    Args:
        runs: one run or several, or their folders.
        classes: names or labels of the classes that the pictures show; by default five of them.
        out: folder for the files, for one run only; by default `analysis` in each run folder.
        formats: of the pictures: png, pdf, svg.
        split: "val" looks at the images that were held out of training (`wsol.evaluate(run, split="val")`).

    >>> import wsol
    >>> found = wsol.analyze("runs/demo")
    >>> found.rows[0].method, 0 <= found.runs[0].effect.auc <= 1
    ('CAM-GPCA', True)
    """
    return analyze_runs(as_runs(runs), classes, None if out is None else Path(out), formats, split)
