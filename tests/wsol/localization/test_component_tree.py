"""The tree against one labelling for each level."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from skimage.measure import euler_number, label

from wsol.localization.component_tree import areas, find_components, pixels

images = arrays(np.uint8, st.tuples(st.integers(3, 12), st.integers(3, 12)), elements=st.integers(0, 6))


def outer_area_less_holes(mask: NDArray[np.bool_]) -> float:
    contours, tree = cv2.findContours(mask.astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    signs = np.where(tree[0, :, 3] < 0, 1, -1).tolist()
    return sum(sign * cv2.contourArea(c) for sign, c in zip(signs, contours, strict=True))


@given(images)
def test_boxes_and_sizes_of_every_component(depth: NDArray[np.uint8]) -> None:
    found = find_components(depth, depth / 6, 6, diagonal=True, most=1000, sizes=(pixels, areas))
    assert found is not None
    for level in range(6):
        numbered = label(depth > level, connectivity=2)
        expected = []
        for component in range(1, numbered.max() + 1):
            mask = numbered == component
            ys, xs = np.nonzero(mask)
            box = (xs.min(), ys.min(), xs.max() + 1, ys.max() + 1)
            euler = euler_number(mask, connectivity=2)
            expected.append((*map(int, box), len(xs), outer_area_less_holes(mask), euler))
        here = found.level == level
        sizes = [found.sizes[name][here].tolist() for name in ("pixels", "area", "euler")]
        assert sorted(zip(*found.boxes[here].T.tolist(), *sizes, strict=True)) == sorted(expected)


@given(images)
def test_four_connected(depth: NDArray[np.uint8]) -> None:
    found = find_components(depth, depth / 6, 6, diagonal=False, most=1000, sizes=(pixels,))
    assert found is not None
    for level in range(6):
        numbered = label(depth > level, connectivity=1)
        counts = np.bincount(numbered.ravel())[1:].tolist()
        assert sorted(found.sizes["pixels"][found.level == level].tolist()) == sorted(counts)
        assert found.highest[found.level == level].sum() == (level < depth.max())


@given(images, st.integers(0, 2**32 - 1))
def test_the_finer_map_changes_nothing(depth: NDArray[np.uint8], seed: int) -> None:
    """It only breaks ties, so any refinement gives the same components."""
    noise = np.random.default_rng(seed).random(depth.shape)
    plain, refined = (
        find_components(depth, fine, 6, diagonal=True, most=1000, sizes=())
        for fine in (depth / 7, (depth + noise) / 7)
    )
    assert plain is not None
    assert refined is not None
    rows = [sorted(zip(c.level.tolist(), *c.boxes.T.tolist(), strict=True)) for c in (plain, refined)]
    assert rows[0] == rows[1]


def test_too_many_peaks() -> None:
    depth = np.zeros((20, 20), np.uint8)
    depth[::2, ::2] = 3
    assert find_components(depth, depth / 3, 3, diagonal=True, most=99, sizes=()) is None
    found = find_components(depth, depth / 3, 3, diagonal=True, most=100, sizes=())
    assert found is not None
    assert np.bincount(found.level).tolist() == [100, 100, 100]


def test_a_peak_and_its_shoulder_by_hand() -> None:
    """Depth 1 1 3 1 2 0 in a row: two components above 1, one above 0."""
    depth = np.array([[1, 1, 3, 1, 2, 0]] * 3, np.uint8)
    found = find_components(depth, depth / 3, 3, diagonal=True, most=9, sizes=(pixels,))
    assert found is not None
    rows = sorted(
        zip(found.level.tolist(), found.boxes.tolist(), found.sizes["pixels"].tolist(), strict=True)
    )
    assert rows == [
        (0, [0, 0, 5, 3], 15.0),
        (1, [2, 0, 3, 3], 3.0),
        (1, [4, 0, 5, 3], 3.0),
        (2, [2, 0, 3, 3], 3.0),
    ]


@pytest.mark.parametrize("value", [0, 4])
def test_flat_images(value: int) -> None:
    depth = np.full((5, 7), value, np.uint8)
    found = find_components(depth, np.zeros((5, 7)), 4, diagonal=True, most=9, sizes=(pixels, areas))
    assert found is not None
    assert found.level.tolist() == list(range(value))
    assert found.sizes["area"].tolist() == [24.0] * value
