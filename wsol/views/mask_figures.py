"""The distribution of attention masks as tables and pictures, as the paper's figures show it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from wsol.class_names import display_names
from wsol.runs.files import replacing, write_text
from wsol.scoring.mask_distribution import QUANTILES, MaskDistribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ZOOMED = 10  # channels in the close-up


def write_mask_tables(found: MaskDistribution, folder: Path) -> list[Path]:
    """mask_means.csv, mask_histogram.csv and mask_quantiles.csv; they keep the class names as they are."""
    names = list(found.classes)
    bins = zip(found.edges[:-1].tolist(), found.edges[1:].tolist(), found.counts.T.tolist(), strict=True)
    boxed = zip(found.channels.tolist(), found.quantiles.T.tolist(), strict=True)
    tables: dict[str, list[list[object]]] = {
        "mask_means": [["channel", *names], *([i, *row] for i, row in enumerate(found.means.T.tolist()))],
        "mask_histogram": [["from", "to", *names], *([low, high, *row] for low, high, row in bins)],
        "mask_quantiles": [["channel", *(f"q{q:g}" for q in QUANTILES)], *([c, *row] for c, row in boxed)],
    }
    paths = []
    for name, rows in tables.items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        paths.append(folder / f"{name}.csv")
        write_text(paths[-1], text.getvalue())
    return paths


def draw_mask_figures(found: MaskDistribution, folder: Path, title: str) -> list[Path]:
    """mask_means.png (with a close-up), mask_histogram.png and mask_boxes.png."""
    shown = display_names(found.classes)
    figures = {
        "mask_means": _draw_means(found, shown),
        "mask_histogram": _draw_histogram(found, shown),
        "mask_boxes": _draw_boxes(found),
    }
    paths = []
    for name, figure in figures.items():
        figure.suptitle(title, fontsize=10)
        paths.append(folder / f"{name}.png")
        with replacing(paths[-1]) as draft:
            figure.savefig(draft, dpi=150, format="png")
    return paths


def _draw_means(found: MaskDistribution, shown: list[str]) -> Figure:
    from matplotlib.figure import Figure

    num = found.means.shape[1]
    start = max(0, min(70, num - ZOOMED) if num > 80 else (num - ZOOMED) // 2)
    stop = min(start + ZOOMED, num)
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    wide, close = figure.subplots(1, 2, width_ratios=(3, 1))
    _draw_lines(wide, found, shown, range(num))
    _draw_lines(close, found, shown, range(start, stop))
    wide.axvspan(start, stop - 1, color="#eeeeee", zorder=0)
    wide.set_ylabel("mean mask")
    wide.legend(fontsize=7)
    return figure


def _draw_lines(axes: Axes, found: MaskDistribution, shown: list[str], channels: range) -> None:
    for name, mean in zip(shown, found.means, strict=True):
        axes.plot(list(channels), mean[channels.start : channels.stop], linewidth=1, label=name)
    axes.set_xlabel("channel")


def _draw_histogram(found: MaskDistribution, shown: list[str]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, counts in zip(shown, found.counts, strict=True):
        axes.stairs(counts, found.edges, label=name)
    axes.set_xlabel("mask")
    axes.set_ylabel("values")
    axes.legend(fontsize=7)
    return figure


def _draw_boxes(found: MaskDistribution) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    keys = ("whislo", "q1", "med", "q3", "whishi")
    stats = [
        {"label": str(channel), "fliers": [], **dict(zip(keys, column, strict=True))}
        for channel, column in zip(found.channels.tolist(), found.quantiles.T.tolist(), strict=True)
    ]
    axes.bxp(stats, showfliers=False)
    axes.set_xlabel("channel (whiskers: smallest and largest)")
    axes.set_ylabel("mask")
    return figure
