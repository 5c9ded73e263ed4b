"""How well a channel attention knows the class: the paper's NLL analysis, over all test images.

Before the pooling each channel is a class, so the label of an image is the target of its mask. The paper does
not print its formula, and a softmax over masks in [0, 1] cannot be it: with 200 classes it stays above 4.31,
and the paper reports 3.47. So there are three definitions, each with a name, for logits z, a mask v and the
label y:

- `nll_prediction`: -ln softmax(z)_y
- `nll_mask`: -ln(v_y / sum_c v_c)
- `nll_mask_logit`: -ln softmax(ln(v / (1 - v)))_y

A model that knows nothing has ln C.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logit

from wsol.localization.predictions import Flag, Predictions

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
    """The mean of each definition over the images that could be read; None where there is no attention."""
    rows = np.flatnonzero((predictions.flags & Flag.UNREADABLE) == 0)
    sums = dict.fromkeys(DEFINITIONS, 0.0)
    masks = predictions.masks
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        labels = np.asarray(predictions.labels[part])
        sums["nll_prediction"] += float(nll_prediction(predictions.scores[part], labels).sum())
        if masks is not None:
            sums["nll_mask"] += float(nll_mask(masks[part], labels).sum())
            sums["nll_mask_logit"] += float(nll_mask_logit(masks[part], labels).sum())
    means: dict[str, float | None] = {name: total / max(len(rows), 1) for name, total in sums.items()}
    if masks is None:
        means |= {"nll_mask": None, "nll_mask_logit": None}
    return means


def _pick(values: NDArray[np.float64], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    return np.take_along_axis(values, labels[:, None], axis=1)[:, 0]
