"""Boxes at all thresholds at once against one pass per threshold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from skimage.measure import label, regionprops

from wsol.localization import boxes
from wsol.localization.boxes import (
    contour_boxes,
    cut,
    cut_quantized,
    foreground_boxes,
    largest_component_boxes,
)

small_maps = arrays(
    np.float64,
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    elements=st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.5, 0.55, 0.9, 1.0]),
)
# Larger and of few values: plateaus, rings, nested holes.
step_maps = arrays(np.float64, (13, 14), elements=st.sampled_from([0.0, 0.0, 0.2, 0.5, 1.0]))
THRESHOLDS = np.array([0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 0.9, 1.0])


def around(mask: NDArray[np.bool_]) -> list[int]:
    """The box of a mask by definition, or -1 where it is empty."""
    ys, xs = np.nonzero(mask)
    if len(xs) == 0:
        return [-1] * 4
    return [int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1]


@given(small_maps, st.booleans())
def test_depth_counts_the_levels_passed(score_map: NDArray[np.float64], strict: bool) -> None:
    levels = cut(score_map, THRESHOLDS, strict)
    for i, threshold in enumerate(THRESHOLDS):
        expected = score_map > threshold if strict else score_map >= threshold
        np.testing.assert_array_equal(levels.depth > levels.index[i], expected)


@given(small_maps)
def test_quantized_levels(score_map: NDArray[np.float64]) -> None:
    image = (score_map * 255).astype(np.uint8)
    levels = cut_quantized(score_map, THRESHOLDS)
    for i, threshold in enumerate(THRESHOLDS):
        expected = image > int(threshold * np.max(image))
        np.testing.assert_array_equal(levels.depth > levels.index[i], expected)


def test_a_thousand_thresholds_have_at_most_255_levels() -> None:
    ramp = np.linspace(0, 1, 224 * 224).reshape(224, 224)
    assert cut_quantized(ramp, np.arange(0, 1, 0.001)).num == 255


@given(small_maps, st.booleans())
def test_foreground_boxes(score_map: NDArray[np.float64], strict: bool) -> None:
    found = foreground_boxes(score_map, THRESHOLDS, strict)
    for threshold, box in zip(THRESHOLDS, found.tolist(), strict=True):
        assert box == around(score_map > threshold if strict else score_map >= threshold)


@given(small_maps)
def test_largest_component_is_skimages(score_map: NDArray[np.float64]) -> None:
    levels = cut(score_map, THRESHOLDS)
    found = largest_component_boxes(levels, contour_boxes(levels))
    first = largest_component_boxes(levels, contour_boxes(levels), first_pixel=True)
    for level in range(levels.num):
        components = regionprops(label(levels.depth > level, connectivity=2))
        if not components:
            assert found[level].tolist() == [-1] * 4
            continue
        most = max(c.area for c in components)
        # skimage numbers components by their first pixel, row by row
        largest = [[c.bbox[1], c.bbox[0], c.bbox[3], c.bbox[2]] for c in components if c.area == most]
        assert found[level].tolist() in largest
        assert first[level].tolist() == largest[0]


@given(small_maps)
def test_every_level_has_the_contours_of_its_mask(score_map: NDArray[np.float64]) -> None:
    """As many outer contours as components; the box of each component is among the boxes."""
    levels = cut(score_map, THRESHOLDS)
    contours = contour_boxes(levels)
    assert contours.largest is not None
    for level in range(levels.num):
        mask = levels.depth > level
        numbered = label(mask, connectivity=2)
        found = contours.boxes[contours.level == level].tolist()
        assert len(found) >= numbered.max()
        for component in range(1, numbered.max() + 1):
            assert around(numbered == component) in found
        assert (contours.largest[level, 0] < 0) == (not mask.any())


@given(small_maps | step_maps, st.booleans())
def test_the_tree_finds_what_passes_find(score_map: NDArray[np.float64], holes: bool) -> None:
    """The same contours, the same largest one, the same component with the most pixels."""
    assume(min(score_map.shape) >= 3)  # smaller maps are always done by passes
    levels = cut(score_map, THRESHOLDS)
    passes = contour_boxes(levels, holes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "FEW_LEVELS", 0)
        tree = contour_boxes(levels, holes)
    if not (score_map > 0).any():  # no level has foreground: nothing to find, either way
        assert len(tree.boxes) == len(passes.boxes) == 0
        assert (largest_component_boxes(levels, tree) == -1).all()
        return
    assert tree.most is not None
    assert passes.most is None
    for level in range(levels.num):
        both = [sorted(c.boxes[c.level == level].tolist()) for c in (tree, passes)]
        assert both[0] == both[1], level
    assert tree.largest is not None
    assert passes.largest is not None
    np.testing.assert_array_equal(tree.largest, passes.largest)
    for first in (False, True):
        of_tree, of_passes = (largest_component_boxes(levels, c, first) for c in (tree, passes))
        np.testing.assert_array_equal(of_tree, of_passes)


def test_many_peaks_fall_back_to_passes() -> None:
    dots = np.zeros((120, 120))
    dots[::3, ::3] = np.linspace(0.5, 1, 1600).reshape(40, 40)
    levels = cut(dots, np.arange(0, 1, 0.01))
    assert contour_boxes(levels).most is None
    assert (np.bincount(contour_boxes(levels).level)[:50] == 1600).all()


def test_hole_contours_are_one_pixel_wider_than_the_hole() -> None:
    score_map = np.zeros((20, 20))
    score_map[2:18, 2:18] = 1
    score_map[6:10, 7:12] = 0
    contours = contour_boxes(cut(score_map, np.array([0.5])))
    assert sorted(contours.boxes.tolist()) == [[2, 2, 18, 18], [6, 5, 13, 11]]


def test_largest_contour_and_its_absence() -> None:
    score_map = np.zeros((20, 20))
    score_map[1:4, 1:4] = 1
    score_map[10:18, 10:18] = 0.6
    levels = cut(score_map, np.array([0.5, 0.7, 1.0]))
    found = contour_boxes(levels).largest
    assert found is not None
    assert found.tolist() == [[10, 10, 18, 18], [1, 1, 4, 4], [-1] * 4]


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2)])
def test_thin_maps(shape: tuple[int, int]) -> None:
    contours = contour_boxes(cut(np.ones(shape), np.array([0.5])))
    assert contours.boxes.tolist() == [[0, 0, shape[1], shape[0]]]
