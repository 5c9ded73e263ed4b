"""How well a channel attention knows the class: the paper's NLL analysis, over all test images.

Before the pooling each channel is a class, so the label of an image is the target of its mask. The paper does
not print its formula, and a softmax over masks in [0, 1] cannot be it: with 200 classes it stays above 4.31,
and the paper reports 3.47. So there are three definitions, each with a name, for logits z, a mask v and the
label y:

- `nll_prediction`: -ln softmax(z)_y
- `nll_mask`: -ln(v_y / sum_c v_c)
- `nll_mask_logit`: -ln softmax(ln(v / (1 - v)))_y, for masks in [0, 1] alone: GCT's reach up to 2

A model that knows nothing has ln C.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logit

from wsol.localization.predictions import Flag, Predictions
from wsol.scoring.mask_distribution import rows_with_masks

DEFINITIONS = ("nll_prediction", "nll_mask", "nll_mask_logit")

_BLOCK = 4096
_TINY = 1e-12  # keeps masks of exactly 0 and 1 finite


def nll_prediction(logits: NDArray[np.floating], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """(N,) from logits (N, C)."""
    return -_pick(log_softmax(logits.astype(np.float64), axis=1), labels)


def nll_mask(masks: NDArray[np.floating], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """(N,) from masks (N, C)."""
    v = np.clip(masks.astype(np.float64), _TINY, None)
    return -np.log(_pick(v, labels) / v.sum(axis=1))


def nll_mask_logit(masks: NDArray[np.floating], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """(N,) from masks (N, C) in [0, 1]."""
    v = np.clip(masks.astype(np.float64), _TINY, 1 - _TINY)
    return -_pick(log_softmax(logit(v), axis=1), labels)


def analyze_nll(predictions: Predictions) -> dict[str, float | None]:
    """The mean of each definition over the images that could be read, for masks those without NaN.

    None where there is no attention, and for `nll_mask_logit` where a mask is above 1.
    """
    readable = np.flatnonzero((predictions.flags & Flag.UNREADABLE) == 0)
    found = {"nll_prediction": _mean(nll_prediction, predictions.scores, predictions.labels, readable)}
    masks, rows = predictions.masks, rows_with_masks(predictions)
    if masks is None or not len(rows):
        return {**found, "nll_mask": None, "nll_mask_logit": None}
    found["nll_mask"] = _mean(nll_mask, masks, predictions.labels, rows)
    in_range = all(masks[rows[i : i + _BLOCK]].max() <= 1 for i in range(0, len(rows), _BLOCK))
    return {
        **found,
        "nll_mask_logit": _mean(nll_mask_logit, masks, predictions.labels, rows) if in_range else None,
    }


def _mean(
    definition: Callable[[NDArray[np.floating], NDArray[np.integer]], NDArray[np.float64]],
    values: NDArray[np.floating],
    labels: NDArray[np.integer],
    rows: NDArray[np.int64],
) -> float:
    parts = (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))
    total = sum(float(definition(values[part], np.asarray(labels[part])).sum()) for part in parts)
    return total / max(len(rows), 1)


def _pick(values: NDArray[np.float64], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    return np.take_along_axis(values, labels[:, None], axis=1)[:, 0]
