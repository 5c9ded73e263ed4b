"""The distribution of attention masks, as the paper's figures show it.

For a few classes: the mean mask of each channel over the class's test images, and a histogram of all mask
values; for eight channels at equal intervals: a box plot over all test images. As numbers and as pictures.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wsol.localization.predictions import Predictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 50
BOXED_CHANNELS = 8
ZOOMED = 10  # channels in the close-up
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class MaskDistribution:
    """means: (K, C) of K chosen classes. edges: (BINS + 1,), counts: (K, BINS) of their mask values.

    channels: which ones are boxed; quantiles: (5, channels) over all test images.
    """

    classes: tuple[str, ...]
    means: NDArray[np.float64]
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    channels: NDArray[np.int64]
    quantiles: NDArray[np.float64]


def default_classes(predictions: Predictions, num: int = 5) -> list[int]:
    """Classes at equal intervals, as many as the paper shows."""
    there = np.unique(predictions.labels)
    return [int(there[i]) for i in np.unique(np.linspace(0, len(there) - 1, num).astype(int))]


def distribution(predictions: Predictions, labels: Sequence[int]) -> MaskDistribution:
    """Of the masks of the chosen classes; the predictions must have masks."""
    masks = predictions.masks
    if masks is None:
        raise ValueError("these predictions have no attention masks")
    chosen = [np.asarray(masks[np.flatnonzero(predictions.labels == label)]) for label in labels]
    low = min(float(m.min()) for m in chosen)
    high = max(float(m.max()) for m in chosen)
    edges = np.linspace(low, high if high > low else low + 1e-6, BINS + 1)
    num = masks.shape[1]
    channels = np.unique(np.linspace(0, num - 1, min(BOXED_CHANNELS, num)).astype(np.int64))
    return MaskDistribution(
        tuple(predictions.classes[label] for label in labels),
        np.stack([m.mean(axis=0, dtype=np.float64) for m in chosen]),
        edges,
        np.stack([np.histogram(m, edges)[0] for m in chosen]),
        channels,
        np.quantile(np.asarray(masks[:, channels], dtype=np.float64), QUANTILES, axis=0),
    )


def write_csv(found: MaskDistribution, folder: Path) -> list[Path]:
    """mask_means.csv, mask_histogram.csv and mask_quantiles.csv."""
    names = list(found.classes)
    tables: dict[str, list[list[object]]] = {
        "mask_means": [["channel", *names], *([i, *row] for i, row in enumerate(found.means.T.tolist()))],
        "mask_histogram": [
            ["from", "to", *names],
            *(
                [low, high, *row]
                for low, high, row in zip(
                    found.edges[:-1].tolist(), found.edges[1:].tolist(), found.counts.T.tolist(), strict=True
                )
            ),
        ],
        "mask_quantiles": [
            ["channel", *(f"q{q:g}" for q in QUANTILES)],
            *([c, *row] for c, row in zip(found.channels.tolist(), found.quantiles.T.tolist(), strict=True)),
        ],
    }
    paths = []
    for name, rows in tables.items():
        paths.append(folder / f"{name}.csv")
        with paths[-1].open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return paths


def draw(found: MaskDistribution, folder: Path, title: str) -> list[Path]:
    """mask_means.png (with a close-up), mask_histogram.png and mask_boxes.png."""
    from matplotlib.figure import Figure

    def save(name: str, figure: Figure) -> Path:
        figure.suptitle(title, fontsize=10)
        figure.savefig(folder / f"{name}.png", dpi=150)
        return folder / f"{name}.png"

    num = found.means.shape[1]
    start = max(0, min(70, num - ZOOMED) if num > 80 else (num - ZOOMED) // 2)

    means = Figure(figsize=(10, 3.6), layout="constrained")
    wide, close = means.subplots(1, 2, width_ratios=(3, 1))
    _lines(wide, found, range(num))
    _lines(close, found, range(start, min(start + ZOOMED, num)))
    wide.axvspan(start, min(start + ZOOMED, num) - 1, color="#eeeeee", zorder=0)
    wide.set_ylabel("mean mask")
    wide.legend(fontsize=7)

    histogram = Figure(figsize=(6, 3.6), layout="constrained")
    axes = histogram.subplots()
    for name, counts in zip(found.classes, found.counts, strict=True):
        axes.stairs(counts, found.edges, label=name)
    axes.set_xlabel("mask")
    axes.set_ylabel("values")
    axes.legend(fontsize=7)

    boxes = Figure(figsize=(6, 3.6), layout="constrained")
    axes = boxes.subplots()
    keys = ("whislo", "q1", "med", "q3", "whishi")
    stats = [
        {"label": str(channel), "fliers": [], **dict(zip(keys, column, strict=True))}
        for channel, column in zip(found.channels.tolist(), found.quantiles.T.tolist(), strict=True)
    ]
    axes.bxp(stats, showfliers=False)
    axes.set_xlabel("channel (whiskers: smallest and largest)")
    axes.set_ylabel("mask")
    return [save("mask_means", means), save("mask_histogram", histogram), save("mask_boxes", boxes)]


def _lines(axes: Axes, found: MaskDistribution, channels: range) -> None:
    for name, mean in zip(found.classes, found.means, strict=True):
        axes.plot(list(channels), mean[channels.start : channels.stop], linewidth=1, label=name)
    axes.set_xlabel("channel")
