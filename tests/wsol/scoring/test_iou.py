from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchvision.ops import box_iou

from wsol.scoring.iou import iou

corner = st.integers(0, 60)
side = st.integers(1, 60)
boxes = st.lists(
    st.tuples(corner, corner, side, side).map(lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3])),
    min_size=1,
    max_size=5,
)


def test_the_two_conventions_by_hand() -> None:
    a, b = [(0, 0, 9, 9)], [(5, 0, 14, 9)]
    assert iou(a, b, "pixel")[0, 0] == 50 / 150
    assert iou(a, b, "edge")[0, 0] == 36 / 126


@given(boxes, boxes)
def test_edge_is_torchvisions(a: list[tuple[int, ...]], b: list[tuple[int, ...]]) -> None:
    expected = box_iou(torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64))
    np.testing.assert_allclose(iou(a, b, "edge"), expected.numpy(), atol=1e-12)


@given(boxes, boxes)
def test_pixel_is_edge_of_boxes_one_larger(a: list[tuple[int, ...]], b: list[tuple[int, ...]]) -> None:
    one = np.array([0, 0, 1, 1])
    larger_a, larger_b = np.array(a) + one, np.array(b) + one
    np.testing.assert_array_equal(iou(a, b, "pixel"), iou(larger_a, larger_b, "edge"))


@given(boxes)
def test_symmetric_bounded_and_one_with_itself(a: list[tuple[int, ...]]) -> None:
    found = iou(a, a, "pixel")
    np.testing.assert_array_equal(found, found.T)
    assert (np.diag(found) == 1).all()
    assert ((found >= 0) & (found <= 1)).all()


def test_an_empty_union_is_zero() -> None:
    assert iou([(3, 3, 3, 3)], [(3, 3, 3, 3)], "edge")[0, 0] == 0.0
    assert iou([(3, 3, 3, 3)], [(3, 3, 3, 3)], "pixel")[0, 0] == 1.0


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"boxes \(n, 4\)"):
        iou([0, 0, 1, 1], [(0, 0, 1, 1)], "pixel")
