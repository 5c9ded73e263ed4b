"""From a map to labels of pixels, on maps made by hand; labels are cropped and flipped as images are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from wsol.data.augment import CropFlip
from wsol.models.heads.targets import BACKGROUND, FOREGROUND, UNDECIDED
from wsol.training.guides import label_pixels


def bumps(*centres: tuple[int, int, float], side: int = 24) -> NDArray[np.float64]:
    y, x = np.mgrid[:side, :side]
    parts = [h * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / 18) for cy, cx, h in centres]
    return np.asarray(np.sum(parts, axis=0))


def test_the_largest_component_is_the_object() -> None:
    raw = bumps((6, 6, 1.0), (18, 18, 0.8))
    labels = label_pixels(raw, 24, foreground=0.5, background=0.1)
    assert labels[6, 6] == FOREGROUND
    assert labels[18, 18] == UNDECIDED  # above the threshold, but not the largest
    assert labels[0, 23] == BACKGROUND
    p = (raw - raw.min()) / (raw.max() - raw.min())
    assert np.array_equal(labels == BACKGROUND, p < 0.1)
    assert set(np.unique(labels[(p >= 0.1) & (p <= 0.5)]).tolist()) == {UNDECIDED}


def test_a_cut_of_its_own_stands_for_the_thresholds() -> None:
    raw = bumps((6, 6, 1.0), (18, 18, 0.8)) - 0.3
    labels = label_pixels(raw, 24, foreground=0.9, background=0.8, cut=0.0)
    assert np.array_equal(labels == BACKGROUND, raw <= 0)
    assert labels[6, 6] == FOREGROUND
    assert labels[18, 18] == UNDECIDED
    nowhere = label_pixels(raw - 2, 24, 0.5, 0.1, cut=0.0)
    assert (nowhere == BACKGROUND).all()


@pytest.mark.parametrize("raw", [np.zeros((4, 4)), np.full((4, 4), np.nan), np.array([[0, np.inf], [1, 2]])])
def test_a_map_that_says_nothing_decides_nothing(raw: NDArray[np.float64]) -> None:
    assert (label_pixels(raw, 8, 0.5, 0.1) == UNDECIDED).all()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    scale=st.floats(0.01, 100),
    shift=st.floats(-10, 10),
    low=st.floats(0, 0.5),
    high=st.floats(0.5, 1),
)
def test_scale_and_shift_of_a_map_do_not_matter(
    seed: int, scale: float, shift: float, low: float, high: float
) -> None:
    raw = np.random.default_rng(seed).normal(size=(5, 5))
    labels = label_pixels(raw, 16, high, low)
    assert set(np.unique(labels).tolist()) <= {BACKGROUND, FOREGROUND, UNDECIDED}
    assert (
        labels != label_pixels(scale * raw + shift, 16, high, low)
    ).mean() < 0.02  # rounding at a threshold
    assert np.array_equal(labels == BACKGROUND, label_pixels(raw, 16, 1.0, low) == BACKGROUND)


@settings(max_examples=20, deadline=None)
@given(epoch=st.integers(0, 50), index=st.integers(0, 50))
def test_labels_are_cropped_and_flipped_as_the_image_is(epoch: int, index: int) -> None:
    augment = CropFlip(resize=64, side=48, seed=3)
    y, x = np.mgrid[:64, :64].astype(np.uint8)
    image = np.stack([y, x, y], axis=2) * 3  # of the size it is resized to: each pixel tells its place
    shown = augment(Image.fromarray(image), (epoch, index))
    np.testing.assert_array_equal(augment.cut_out(image[..., 0], (epoch, index)), shown[..., 0])
    np.testing.assert_array_equal(augment.cut_out(image[..., 1], (epoch, index)), shown[..., 1])
