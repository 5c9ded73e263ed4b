"""Percentile bootstrap intervals of means: how much a figure may differ for other test images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DRAWS = 1000
LEVEL = 0.95
_BLOCK = 100  # draws at a time, which bounds the memory


def intervals(
    hits: NDArray[np.bool_] | NDArray[np.float64], seed: int = 0, draws: int = DRAWS
) -> NDArray[np.float64]:
    """(2, K): the ends of the 95 % interval of the mean of each column of hits (N, K).

    Images are drawn with replacement, the same ones for all columns. How often each is drawn is multinomial,
    so a draw is a row of weights and all means are one matrix product.
    """
    num, columns = hits.shape
    rng = np.random.default_rng(seed)
    means = np.empty((draws, columns))
    values = hits.astype(np.float64)
    for start in range(0, draws, _BLOCK):
        stop = min(start + _BLOCK, draws)
        weights = rng.multinomial(num, np.full(num, 1 / num), size=stop - start)
        means[start:stop] = weights @ values / num
    tail = (1 - LEVEL) / 2
    return np.quantile(means, [tail, 1 - tail], axis=0)
