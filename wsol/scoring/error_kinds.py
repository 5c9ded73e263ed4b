"""Why an image is missed. Each image gets the first kind that applies.

With I the area that the box shares with a truth box, B the box's area and G the truth box's:

1. **hit**: the class is right and the box passes;
2. **wrong class**: the best class is not the true one;
3. **several instances**: I / G > 0.3 with two or more truth boxes;
4. **part of the object**: I / B > 0.5: most of the box is object, yet it misses much of it;
5. **too much around it**: I / G > 0.7: the object is covered, with much else;
6. **wrong place**: none of these.

Rules 4 and 5 look at the truth box with the largest IoU. The bounds 0.3, 0.5 and 0.7 follow Guo et al. 2021.
Without predicted classes, rule 2 is not used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wsol.scoring.iou import Convention, overlap

KINDS = (
    "hit",
    "wrong class",
    "several instances",
    "part of the object",
    "too much around it",
    "wrong place",
)

UNREADABLE = "unreadable image"
OUTCOMES = (*KINDS, UNREADABLE)  # the possible outcomes of an image

SEVERAL, PART, MORE = 0.3, 0.5, 0.7


def error_kind(
    box: ArrayLike, truths: NDArray[np.float64], right_class: bool, passed: bool, convention: Convention
) -> str:
    """The kind of one image; `passed` is whether its box is a hit by the protocol."""
    if not right_class:
        return "wrong class"
    if passed:
        return "hit"
    if len(truths) == 0:
        return "wrong place"
    areas = overlap(np.asarray(box)[None], truths, convention)
    of_truth = _share(areas.shared, areas.truths)[0]
    if (of_truth > SEVERAL).sum() > 1:
        return "several instances"
    nearest = int(np.argmax(_share(areas.shared, areas.boxes + areas.truths - areas.shared)))
    if areas.shared[0, nearest] / areas.boxes[0, 0] > PART:
        return "part of the object"
    if of_truth[nearest] > MORE:
        return "too much around it"
    return "wrong place"


def _share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """part / whole; 0 where the whole is nothing, as a truth box that lies outside the crop can be."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0.0)
