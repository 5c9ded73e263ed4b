"""Percentile bootstrap intervals of means: how much a figure may differ for other test images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DRAWS = 1000
LEVEL = 0.95
_BLOCK = 100  # draws at a time, which bounds the memory


def intervals(
    hits: NDArray[np.bool_] | NDArray[np.float64],
    seed: int = 0,
    draws: int = DRAWS,
    groups: NDArray[np.integer] | None = None,
) -> NDArray[np.float64]:
    """(2, K): the ends of the 95 % interval of the mean of each column of hits (N, K).

    Images are drawn with replacement, the same ones for all columns. How often each is drawn is multinomial,
    so a draw is a row of weights and all means are one matrix product.

    groups: (N,) from 0, for the mean over groups of each group's mean. Then images are drawn within
    each group, so that no group is empty.
    """
    columns = hits.shape[1]
    owner = np.zeros(len(hits), dtype=np.int64) if groups is None else groups
    members = [hits[owner == group].astype(np.float64) for group in range(int(owner.max()) + 1)]
    rng = np.random.default_rng(seed)
    means = np.zeros((draws, columns))
    for start in range(0, draws, _BLOCK):
        stop = min(start + _BLOCK, draws)
        for values in members:
            num = len(values)
            weights = rng.multinomial(num, np.full(num, 1 / num), size=stop - start)
            means[start:stop] += weights @ values / num
    tail = (1 - LEVEL) / 2
    return np.quantile(means / len(members), [tail, 1 - tail], axis=0)
