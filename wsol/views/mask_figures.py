"""The attention of a run as tables and figures: what its masks are, and its learned numbers over training."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wsol.class_names import display_names
from wsol.localization.predictions import Predictions
from wsol.runs.files import write_text
from wsol.scoring.mask_distribution import QUANTILES, MaskDistribution, rows_with_masks
from wsol.views.figure_style import (
    COLOURS,
    COLUMN,
    GREY,
    PAGE,
    SHADE,
    Format,
    legend_below,
    line_look,
    new_figure,
    paper_style,
    save_figure,
    without_math,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ZOOMED = 10  # channels in the close-up
BINS = (8, 60)  # least and most, in the histogram of the true class


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


def draw_mask_figures(
    found: MaskDistribution,
    predictions: Predictions,
    folder: Path,
    title: str,
    formats: Sequence[Format] = ("png",),
) -> list[Path]:
    """mask_means (with a close-up), mask_histogram, mask_boxes and mask_true_class, in each format."""
    with paper_style():
        names = display_names(predictions.classes)
        shown = display_names(found.classes)
        figures = {
            "mask_means": _draw_means(found, shown, names, title),
            "mask_histogram": _draw_histogram(found, shown, title),
            "mask_boxes": _draw_boxes(found, names, title),
            "mask_true_class": _draw_true_class(predictions, title),
        }
        return [p for name, figure in figures.items() for p in save_figure(figure, folder, name, formats)]


def draw_scalars(
    series: Mapping[str, Sequence[tuple[float, float]]],
    folder: Path,
    title: str,
    formats: Sequence[Format] = ("png",),
) -> list[Path]:
    """attention_scalars: each learned number over the epochs, as (epoch, value) by its name."""
    with paper_style():
        from matplotlib.ticker import MaxNLocator

        columns = min(len(series), 5)
        rows = -(-len(series) // columns)
        figure = new_figure(PAGE if columns > 2 else COLUMN, 1.8 * rows, title)
        grid = figure.subplots(rows, columns, squeeze=False).flat
        for axes, (name, points) in zip(grid, series.items(), strict=False):
            epochs, values = zip(*points, strict=True)
            axes.plot(epochs, values, color=COLOURS[0], marker="o" if len(points) < 30 else "", markersize=2)
            axes.set_title(name)
            axes.set_xlabel("epoch")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=4))
            axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
            axes.yaxis.set_major_formatter("{x:.4g}")
            if max(values) - min(values) < 0.01 * abs(values[0]):  # no more than noise: draw it flat
                axes.set_ylim(*sorted((0.95 * values[0], 1.05 * values[0])))
        for axes in list(figure.axes)[len(series) :]:
            axes.remove()
        return save_figure(figure, folder, "attention_scalars", formats)


def _draw_means(found: MaskDistribution, shown: list[str], names: list[str], title: str) -> Figure:
    num = found.means.shape[1]
    figure = new_figure(PAGE, 3.4, title)
    if num <= 2 * ZOOMED:
        whole = figure.subplots()
        _draw_lines(whole, found, shown, range(num))
        _name_channels(whole, range(num), names)
    else:
        start = min(70, num - ZOOMED) if num > 80 else (num - ZOOMED) // 2
        close_up = range(start, start + ZOOMED)
        whole, close = figure.subplots(1, 2, width_ratios=(2, 1), sharey=True)
        _draw_lines(whole, found, shown, range(num))
        _draw_lines(close, found, shown, close_up)
        whole.axvspan(close_up[0], close_up[-1], color=SHADE, zorder=0)
        whole.set_xlabel("channel (number of the class)")
        _name_channels(close, close_up, names)
        close.set_title("close-up of the shaded channels")
    whole.set_ylabel("mean mask")
    handles, labels = whole.get_legend_handles_labels()
    over = "mean over the images of"
    figure.legend(handles, labels, title=over, loc="outside lower center", ncols=min(len(labels), 3))
    return figure


def _draw_lines(axes: Axes, found: MaskDistribution, shown: list[str], channels: range) -> None:
    for place, (name, mean) in enumerate(zip(shown, found.means, strict=True)):
        values = mean[channels.start : channels.stop]
        axes.plot(list(channels), values, label=without_math(name), **{**line_look(place), "linewidth": 0.9})


def _name_channels(axes: Axes, channels: range, names: list[str]) -> None:
    shown = [without_math(_short(names[channel])) for channel in channels]
    axes.set_xticks(list(channels), shown, rotation=40, ha="right", rotation_mode="anchor")


def _draw_histogram(found: MaskDistribution, shown: list[str], title: str) -> Figure:
    """A small panel for each class: in one panel, the outlines would hide each other."""
    figure = new_figure(COLUMN, 0.6 * len(shown) + 0.7, title)
    panels = figure.subplots(len(shown), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for place, (axes, name, counts) in enumerate(zip(panels, shown, found.counts, strict=True)):
        pairs = counts.reshape(-1, 2).sum(axis=1)  # the table has twice as many bins
        shares = 100 * pairs / max(pairs.sum(), 1)
        axes.stairs(shares, found.edges[::2], fill=True, color=COLOURS[place % len(COLOURS)])
        axes.set_title(without_math(name), loc="left", pad=2)
        axes.locator_params(axis="y", nbins=2)
    panels[-1].set_xlabel("mask")
    panels[-1].locator_params(axis="x", nbins=5)
    figure.supylabel("share of values (%)", fontsize=8)
    return figure


def _draw_boxes(found: MaskDistribution, names: list[str], title: str) -> Figure:
    """Boxes from the lower to the upper quartile, lines from the smallest to the largest value."""
    least, lower, median, upper, most = found.quantiles
    places = np.arange(len(found.channels))
    figure = new_figure(COLUMN, 0.22 * len(places) + 0.9, title)
    axes = figure.subplots()
    axes.hlines(places, least, most, color=COLOURS[0], linewidth=0.9)
    axes.barh(places, upper - lower, left=lower, height=0.5, color="white", edgecolor=COLOURS[0], zorder=3)
    axes.vlines(median, places - 0.25, places + 0.25, color=COLOURS[1], linewidth=1.6, zorder=4)
    shown = [without_math(_short(names[channel])) for channel in found.channels.tolist()]
    axes.set_yticks(places, shown)
    axes.invert_yaxis()
    axes.set_xlabel("mask over all images")
    axes.locator_params(axis="x", nbins=5)
    return figure


def _draw_true_class(predictions: Predictions, title: str) -> Figure:
    """Histograms of the mask of the true class and of the others, over all images that could be read."""
    own, others = _own_and_others(predictions)
    low, high = min(own.min(), others.min()), max(own.max(), others.max())
    bins = int(np.clip(np.sqrt(len(own)), *BINS))
    edges = np.linspace(low, high if high > low else low + 1e-6, bins + 1)
    figure = new_figure(COLUMN, 2.4, title)
    axes = figure.subplots()
    for values, label, colour, fill in (
        (others, "other classes", GREY, True),
        (own, "true class", COLOURS[1], False),
    ):
        shares = 100 * np.histogram(values, edges)[0] / len(values)
        axes.stairs(shares, edges, label=label, color=colour, fill=fill, alpha=0.45 if fill else 1, lw=1.3)
    axes.set_xlabel("mask")
    axes.set_ylabel("share of values (%)")
    axes.locator_params(axis="x", nbins=5)
    legend_below(axes)
    return figure


def _own_and_others(predictions: Predictions) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    assert predictions.masks is not None
    rows = rows_with_masks(predictions)
    masks, labels = np.asarray(predictions.masks[rows], dtype=np.float64), predictions.labels[rows]
    true = np.zeros(masks.shape, dtype=bool)
    true[np.arange(len(labels)), labels] = True
    return masks[true], masks[~true]


def _short(name: str) -> str:
    return textwrap.shorten(name, 24, placeholder="...") if " " in name else name[:24]
