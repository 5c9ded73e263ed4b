"""Test-time views against torchvision, and the way back to original pixels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torchvision import transforms

from wsol.data.transforms import View, ViewKind, resize_square
from wsol.records import Box

KINDS: tuple[ViewKind, ...] = ("resize", "crop")


def picture(width: int, height: int) -> np.ndarray:
    return np.random.default_rng(width * height).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("size", [(320, 213), (100, 333), (224, 224), (500, 375), (1, 7)])
def test_resize_is_torchvisions_bit_for_bit(size: tuple[int, int]) -> None:
    image = picture(*size)
    expected = transforms.Resize((224, 224))(Image.fromarray(image))
    np.testing.assert_array_equal(View("resize", 224).apply(image), np.asarray(expected))


@pytest.mark.parametrize(("side", "resized"), [(224, 256), (112, 128), (225, 257), (96, 110)])
def test_crop_is_torchvisions_bit_for_bit(side: int, resized: int) -> None:
    image = picture(320, 213)
    steps = transforms.Compose([transforms.Resize((resized, resized)), transforms.CenterCrop(side)])
    assert View("crop", side).resized == resized
    np.testing.assert_array_equal(View("crop", side).apply(image), np.asarray(steps(Image.fromarray(image))))


@given(st.data(), st.integers(1, 700), st.integers(1, 700), st.sampled_from([32, 64, 100, 128, 216, 256]))
def test_a_crop_is_that_of_the_whole_bit_for_bit(
    data: st.DataObject, width: int, height: int, side: int
) -> None:
    size = data.draw(st.integers(1, side))
    left, top = (data.draw(st.integers(0, side - size)) for _ in range(2))
    image = picture(width, height)
    whole = np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR))
    part = resize_square(image, side, (left, top, size))
    np.testing.assert_array_equal(part, whole[top : top + size, left : left + size])


def test_the_region_is_what_the_network_sees() -> None:
    assert View("resize", 224).region((320, 200)) == Box(0, 0, 320, 200)
    assert View("crop", 224).region((512, 256)) == Box(32, 16, 480, 240)


def test_a_mark_is_found_where_the_record_says() -> None:
    image = np.zeros((200, 320, 3), np.uint8)
    image[80:120, 200:240] = 255
    for kind in KINDS:
        view = View(kind, 224)
        ys, xs = np.nonzero(view.apply(image)[..., 0] > 127)
        found = Box(xs.min(), ys.min(), xs.max() + 1, ys.max() + 1)
        np.testing.assert_allclose(view.to_original(found, (320, 200)), (200, 80, 240, 120), atol=1.5)


numbers = st.floats(-500, 500)
boxes = st.builds(Box, numbers, numbers, numbers, numbers)


@given(st.sampled_from(KINDS), st.integers(32, 512), st.integers(1, 2000), st.integers(1, 2000), boxes)
def test_there_and_back(kind: ViewKind, side: int, width: int, height: int, box: Box) -> None:
    view, size = View(kind, side), (width, height)
    back = view.to_square(view.to_original(box, size), size)
    np.testing.assert_allclose(back, box, atol=1e-6)
    whole = view.to_original(Box(0, 0, side, side), size)
    np.testing.assert_allclose(whole, view.region(size), atol=1e-9)
