"""Overlays by their pixels: colours where the boxes are, heat where it is hot, sizes that can be read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import colormaps
from PIL import Image

from wsol.drawing.colours import COLD, MAX_ALPHA, PREDICTED, TRUTH, blend_heat, heat_table, to_levels
from wsol.drawing.overlay import MAX_SIDE, MIN_SIDE, Marked, PictureFrame, draw_overlay
from wsol.records import Box


def grey(width: int, height: int) -> np.ndarray:
    return np.full((height, width, 3), 128, np.uint8)


def share(picture: Image.Image, rect: tuple[int, int, int, int], colour: tuple[int, int, int]) -> float:
    """The part of the pixels of a rectangle that have exactly this colour."""
    x0, y0, x1, y1 = rect
    return float((np.asarray(picture)[y0:y1, x0:x1] == colour).all(-1).mean())


@pytest.mark.parametrize("size", [(64, 48), (500, 333), (4000, 3000)])
def test_box_colours_lie_where_the_boxes_are(size: tuple[int, int]) -> None:
    width, height = size
    predicted = Box(width * 0.25, height * 0.25, width * 0.5, height * 0.75)
    truth = Box(width * 0.6, height * 0.1, width * 0.9, height * 0.9)
    picture = draw_overlay(grey(width, height), None, [Marked(predicted)], [Marked(truth)])
    frame = PictureFrame.around(width, height)
    x0, y0, x1, y1 = frame.rect(predicted)
    for edge in (
        (x0, y0, x0 + frame.line, y1),
        (x1 - frame.line, y0, x1, y1),
        (x0, y0, x1, y0 + frame.line),
        (x0, y1 - frame.line, x1, y1),
    ):
        assert share(picture, edge, PREDICTED) == 1.0
    x0, y0, x1, y1 = frame.rect(truth)
    for edge in ((x0 - frame.line, y0, x0, y1), (x1, y0, x1 + frame.line, y1)):
        assert share(picture, edge, TRUTH) == 1.0
    assert share(picture, (0, 0, *picture.size), PREDICTED) < 0.1


def test_both_boxes_are_seen_where_they_coincide_with_the_image() -> None:
    whole = Box(0, 0, 300, 200)
    picture = draw_overlay(grey(300, 200), None, [Marked(whole)], [Marked(whole)])
    frame = PictureFrame.around(300, 200)
    x0, y0, x1, y1 = frame.rect(whole)
    assert share(picture, (x0, y0, x0 + frame.line, y1), PREDICTED) == 1.0
    assert share(picture, (x0 - frame.line, y0, x0, y1), TRUTH) == 1.0
    assert share(picture, (x1, y0, x1 + frame.line, y1), TRUTH) == 1.0


@given(st.integers(1, 6000), st.integers(1, 6000))
def test_the_frame_can_be_read_at_any_image_size(width: int, height: int) -> None:
    frame = PictureFrame.around(width, height)
    assert MIN_SIDE <= max(frame.size) <= MAX_SIDE
    assert min(frame.size) >= 0.4 * max(frame.size) - 1
    assert frame.left >= frame.line
    assert frame.top >= frame.line
    assert frame.left + frame.photo[0] + frame.line <= frame.size[0]
    x0, y0, x1, y1 = frame.rect(Box(0, 0, width, height))
    assert (x0, y0) == (frame.left, frame.top)
    assert (x1 - x0, y1 - y0) == frame.photo


@settings(max_examples=25, deadline=None)
@given(st.tuples(*[st.floats(-500, 500) for _ in range(4)]))
def test_any_box_is_drawn_inside_the_picture(corners: tuple[float, ...]) -> None:
    box = Box(*corners)
    frame = PictureFrame.around(80, 60)
    x0, y0, x1, y1 = frame.rect(box)
    assert frame.left <= x0 < x1 <= frame.left + frame.photo[0]
    assert frame.top <= y0 < y1 <= frame.top + frame.photo[1]
    draw_overlay(grey(80, 60), None, [Marked(box, "somewhere")])


def test_heat_colours_are_matplotlibs_inferno() -> None:
    expected = np.rint(np.array(colormaps["inferno"].colors) * 255)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(heat_table()[:, :3], expected)
    assert heat_table()[: int(COLD * 255), 3].max() == 0
    assert (np.diff(heat_table()[:, 3].astype(int)) >= 0).all()


def test_blending_leaves_cold_pixels_and_mixes_hot_ones() -> None:
    image = np.array([[[10, 200, 90], [10, 200, 90]]], np.uint8)
    blended = blend_heat(image, np.array([[0, 255]], np.uint8))
    np.testing.assert_array_equal(blended[0, 0], image[0, 0])
    alpha = round(MAX_ALPHA * 255) / 255
    np.testing.assert_allclose(
        blended[0, 1], image[0, 1] * (1 - alpha) + heat_table()[255, :3] * alpha, atol=0.51
    )


def test_heat_that_is_no_number_counts_as_cold() -> None:
    heat = np.array([np.nan, np.inf, -np.inf, -3.0, 0.5, 7.0])
    np.testing.assert_array_equal(to_levels(heat), [0, 0, 0, 0, 128, 255])


def test_heat_lies_in_its_region_alone() -> None:
    picture = np.asarray(
        draw_overlay(grey(200, 100), np.ones((4, 4)), heat_region=Box(50, 0, 150, 100)).convert("RGB")
    )
    frame = PictureFrame.around(200, 100)
    x0, y0, x1, y1 = frame.rect(Box(50, 0, 150, 100))
    assert (picture[y0 + 5 : y1 - 5, frame.left : x0 - 1] == 128).all()
    assert (picture[y0 + 5 : y1 - 5, x1 + 1 : frame.left + frame.photo[0]] == 128).all()
    assert (picture[y0 + 5 : y1 - 5, x0 + 1 : x1 - 1, 2] < 180).all()
    assert (picture[y0 + 5 : y1 - 5, x0 + 1 : x1 - 1, 0] > 200).all()
