"""A comparison as a figure for a paper: a panel for each figure, a dot with its deviation for each row."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wsol.views.comparison_formats import shown_metrics
from wsol.views.figure_style import COLOURS, GREY, PAGE, new_figure, paper_style, without_math, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from wsol.scoring.metrics import Metric
    from wsol.views.comparison import ComparedRow

IN_A_ROW = 4  # panels
LINE_HEIGHT = 0.17  # inches
CAPTION_WIDTH = 130  # letters


def draw_comparison(rows: Sequence[ComparedRow], caption: str, path: Path) -> None:
    """The best of a backbone is filled, and a star marks what differs from the reference.

    The name of the file ends with .png, .pdf or .svg.
    """
    from matplotlib.lines import Line2D

    shown = shown_metrics(rows)
    across = min(len(shown), IN_A_ROW)
    down = -(-len(shown) // across)
    words = textwrap.wrap(caption, CAPTION_WIDTH)
    height = down * (0.45 + LINE_HEIGHT * len(rows)) + 0.3 + 0.14 * len(words)
    labels = [without_math(f"{row.backbone}  {row.method}, {row.marked_source}") for row in rows]
    with paper_style():
        figure = new_figure(PAGE, height)
        for place, metric in enumerate(shown):
            axes = figure.add_subplot(down, across, place + 1)
            _draw_metric(axes, rows, metric)
            axes.set_yticks(range(len(rows)), labels if place % across == 0 else [""] * len(rows))
        whose = {"published" if row.published else "ours": row for row in rows}
        marks = [
            Line2D([], [], color=_colour(row), marker="o", ms=4, ls="", label=f"{who}, filled where best")
            for who, row in whose.items()
        ]
        figure.legend(handles=marks, loc="outside upper right", ncols=2)
        figure.supxlabel(without_math("\n".join(words)), fontsize=7)
        write_figure(figure, path, parents=True)


def _colour(row: ComparedRow) -> str:
    return GREY if row.published else COLOURS[0]


def _draw_metric(axes: Axes, rows: Sequence[ComparedRow], metric: Metric) -> None:
    for y, row in enumerate(rows):
        sample = row.figures.get(metric.key)
        if sample is None:
            continue
        axes.errorbar(
            sample.mean,
            y,
            xerr=0 if math.isnan(sample.std) else sample.std,
            fmt="o",
            color=_colour(row),
            markerfacecolor=None if metric.key in row.best else "white",
            markersize=4,
            capsize=2,
        )
        if row.significant(metric.key):
            axes.annotate("*", (sample.mean, y), xytext=(4, 1), textcoords="offset points")
    axes.set_title(metric.short)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.locator_params(axis="x", nbins=4)
