"""The mean of what each image counts: over the images, or over the classes.

Over classes each class has the same weight, however many images it has: the mean of each class is taken
first, then the mean of these. Classes without images do not take part.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Mean = Literal["images", "classes"]


def groups_of(labels: NDArray[np.integer], mean: Mean) -> NDArray[np.int64]:
    """(N,) the group of each image, counted from 0: one for all, or one for each class that has images."""
    if mean == "images":
        return np.zeros(len(labels), dtype=np.int64)
    return np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64)


def percent_over(values: NDArray[Any], labels: NDArray[np.integer], mean: Mean) -> NDArray[np.float64]:
    """Percent of values (N, ...), by the mean that is asked for.

    >>> hits, labels = np.array([True, True, True, False]), np.array([0, 0, 0, 1])
    >>> float(percent_over(hits, labels, "images")), float(percent_over(hits, labels, "classes"))
    (75.0, 50.0)
    """
    groups = groups_of(labels, mean)
    sums = np.stack([values[groups == group].sum(axis=0) for group in range(groups.max() + 1)])
    return percent_of_groups(sums, np.bincount(groups))


def percent_of_groups(sums: NDArray[Any], sizes: NDArray[np.integer]) -> NDArray[np.float64]:
    """The same from the sums (G, ...) over G groups of images and their sizes (G,), all above 0."""
    shares = 100 * sums / sizes.reshape(-1, *[1] * (sums.ndim - 1))
    result: NDArray[np.float64] = shares.mean(axis=0)
    return result
