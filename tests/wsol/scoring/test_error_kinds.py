from __future__ import annotations

import numpy as np
import pytest

from wsol.scoring.error_kinds import KINDS, error_kind

ONE = np.array([[10.0, 10, 29, 29]])  # 20 x 20 pixels
TWO = np.array([[10.0, 10, 19, 29], [20.0, 10, 29, 29]])


@pytest.mark.parametrize(
    ("box", "truths", "right", "passed", "kind"),
    [
        ((10, 10, 29, 29), ONE, True, True, "hit"),
        ((10, 10, 29, 29), ONE, False, True, "wrong class"),
        ((10, 10, 29, 29), TWO, True, False, "several instances"),  # both covered whole
        ((12, 12, 19, 19), ONE, True, False, "part of the object"),  # all of the box is object
        ((0, 0, 49, 49), ONE, True, False, "too much around it"),  # all of the object is in the box
        ((20, 20, 59, 59), ONE, True, False, "wrong place"),  # 100 of 1600 and of 400
        ((40, 40, 49, 49), ONE, True, False, "wrong place"),
        ((10, 10, 29, 29), np.zeros((0, 4)), True, False, "wrong place"),
    ],
)
def test_every_rule(box: tuple[int, ...], truths: np.ndarray, right: bool, passed: bool, kind: str) -> None:
    assert kind in KINDS
    assert error_kind(box, truths, right, passed, "pixel") == kind


def test_the_bounds_are_strict() -> None:
    """Half of the box is object (200 of 400 pixels) and half of the object is in the box."""
    assert error_kind((20, 10, 39, 29), ONE, True, False, "pixel") == "wrong place"
    assert error_kind((19, 10, 38, 29), ONE, True, False, "pixel") == "part of the object"
