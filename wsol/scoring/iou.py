"""Intersection over union of boxes, in both conventions of the field, each by its name.

``pixel``: coordinates name pixels and both ends belong to the box, so that a side is x1 - x0 + 1. The
protocols of the field use this one, although x1 is x + width in their boxes.
``edge``: coordinates name the edges between pixels, so that a side is x1 - x0, as `torchvision.ops.box_iou`
has it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Convention = Literal["pixel", "edge"]

EXTRA: dict[str, int] = {"pixel": 1, "edge": 0}


class Overlap(NamedTuple):
    """Areas for every pair of n boxes and m truths: shared (n, m), boxes (n, 1), truths (1, m)."""

    shared: NDArray[Any]
    boxes: NDArray[Any]
    truths: NDArray[Any]


def overlap(boxes: ArrayLike, truths: ArrayLike, convention: Convention) -> Overlap:
    """The areas of boxes (n, 4), truths (m, 4) and what they share."""
    extra = EXTRA[convention]
    a, b = np.asarray(boxes), np.asarray(truths)
    if a.shape[-1] != 4 or b.shape[-1] != 4 or a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"expected boxes (n, 4) and truths (m, 4), got {a.shape} and {b.shape}")
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    sides = np.maximum(high - low + extra, 0)
    area_a = (a[:, 2] - a[:, 0] + extra) * (a[:, 3] - a[:, 1] + extra)
    area_b = (b[:, 2] - b[:, 0] + extra) * (b[:, 3] - b[:, 1] + extra)
    return Overlap(sides[..., 0] * sides[..., 1], area_a[:, None], area_b[None, :])


def iou(boxes: ArrayLike, truths: ArrayLike, convention: Convention) -> NDArray[np.float64]:
    """(n, m) intersection over union; 0 where the union is empty."""
    areas = overlap(boxes, truths, convention)
    union = areas.boxes + areas.truths - areas.shared
    return np.where(union > 0, areas.shared / np.where(union > 0, union, 1), 0.0)
