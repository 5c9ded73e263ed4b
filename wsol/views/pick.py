"""Which images to show: the worst, the best, some at random, the wrongly named, or one class."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from wsol.class_names import find_label
from wsol.errors import ConfigError
from wsol.registry import suggest

Order = Callable[[NDArray[np.int64], NDArray[np.floating], NDArray[np.floating]], NDArray[np.int64]]

# From (rows, IoU of each image, probability of its best class) to the rows in the order of interest.
ORDERS: dict[str, Order] = {
    "worst": lambda rows, overlap, _: rows[np.argsort(overlap[rows], kind="stable")],
    "best": lambda rows, overlap, _: rows[np.argsort(-overlap[rows], kind="stable")],
    "random": lambda rows, overlap, _: np.random.default_rng(0).permutation(rows),
    "wrong-class": lambda rows, _, score: rows[np.argsort(-score[rows], kind="stable")],
}


def pick_rows(
    how: str,
    num: int,
    overlap: NDArray[np.floating],
    score: NDArray[np.floating],
    predicted: NDArray[np.integer],
    labels: NDArray[np.integer],
    classes: Sequence[str],
) -> list[int]:
    """The rows of up to `num` images.

    how: `worst` and `best` by IoU; `random`, the same at every call; `wrong-class`, the highest score first;
    or the name of a class, its worst first. Images that could not be read (predicted -1) are left out.
    """
    rows = np.flatnonzero(np.asarray(predicted) >= 0)
    if how == "wrong-class":
        rows = rows[np.asarray(predicted)[rows] != np.asarray(labels)[rows]]
    if how in ORDERS:
        return ORDERS[how](rows, overlap, score)[:num].tolist()
    label = find_label(how, classes)
    if label is not None:
        own = rows[np.asarray(labels)[rows] == label]
        return ORDERS["worst"](own, overlap, score)[:num].tolist()
    raise ConfigError(f"pick {how!r}: neither an order nor a class{suggest(how, [*ORDERS, *classes])}")
