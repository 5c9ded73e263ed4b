"""The distribution of attention masks, as the paper's figures show it.

For a few classes: the mean mask of each channel over the class's test images, and a histogram of all mask
values; for eight channels at equal intervals: quantiles over all test images. `wsol.views.mask_figures` draws
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wsol.localization.predictions import Flag, Predictions

BINS = 50
BOXED_CHANNELS = 8
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
_BLOCK = 4096  # images at a time, to save memory


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


def rows_with_masks(predictions: Predictions) -> NDArray[np.int64]:
    """(n,) the images that could be read and whose mask holds neither NaN nor infinity."""
    if predictions.masks is None:
        return np.zeros(0, np.int64)
    rows = np.flatnonzero((predictions.flags & Flag.UNREADABLE) == 0)
    parts = (predictions.masks[rows[i : i + _BLOCK]] for i in range(0, len(rows), _BLOCK))
    finite = [np.isfinite(part).all(axis=1) for part in parts]
    return rows[np.concatenate(finite)] if finite else rows


def default_classes(predictions: Predictions, num: int = 5) -> list[int]:
    """Classes at equal intervals, as many as the paper shows."""
    there = np.unique(predictions.labels[rows_with_masks(predictions)])
    if not len(there):
        return []
    return [int(there[i]) for i in np.unique(np.linspace(0, len(there) - 1, num).astype(int))]


def distribution(predictions: Predictions, labels: Sequence[int]) -> MaskDistribution:
    """Of the masks of the chosen classes, each of which must have an image in `rows_with_masks`."""
    masks = predictions.masks
    if masks is None:
        raise ValueError("these predictions have no attention masks")
    rows = rows_with_masks(predictions)
    chosen = [np.asarray(masks[rows[predictions.labels[rows] == label]]) for label in labels]
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
        np.quantile(masks[np.ix_(rows, channels)].astype(np.float64), QUANTILES, axis=0),
    )
