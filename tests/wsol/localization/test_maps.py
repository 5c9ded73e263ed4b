from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from wsol.localization.maps import NORMALIZATIONS, Recipe, is_constant, prepare, resize

values = st.floats(-1e3, 1e3, allow_nan=False, width=32)
maps = arrays(np.float64, (5, 6), elements=values)


def test_minmax_by_hand() -> None:
    x = np.array([[-2.0, 0.0], [2.0, 6.0]])
    np.testing.assert_array_equal(NORMALIZATIONS["minmax"](x), [[0, 0.25], [0.5, 1]])


def test_max_by_hand() -> None:
    x = np.array([[-2.0, 0.0], [2.0, 8.0]])
    np.testing.assert_array_equal(NORMALIZATIONS["max"](x), [[0, 0], [0.25, 1]])


def test_pas_by_hand() -> None:
    """Twenty values 0..19: the one at 90 % of the order is 18, so 9 becomes one half and 19 is clipped."""
    x = np.arange(20.0).reshape(4, 5)
    found = NORMALIZATIONS["pas"](x)
    assert found[1, 4] == 0.5
    assert found[3, 3] == found[3, 4] == 1.0


def test_ivr_by_hand() -> None:
    """Twenty values 0..19: the one at 40 % is 8; what is below goes to 0, 19 to 1."""
    x = np.arange(20.0).reshape(4, 5)
    found = NORMALIZATIONS["ivr"](x)
    assert (found.ravel()[:9] == 0).all()
    assert found.ravel()[9] == 1 / 11
    assert found[3, 4] == 1


@pytest.mark.parametrize("name", list(NORMALIZATIONS))
@given(x=maps)
def test_all_stay_within_0_and_1(name: str, x: np.ndarray) -> None:
    found = NORMALIZATIONS[name](x)
    assert found.shape == x.shape
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize("name", ["minmax", "pas", "ivr"])
@given(x=maps, scale=st.sampled_from([0.5, 2.0, 4.0]))
def test_scale_does_not_matter(name: str, x: np.ndarray, scale: float) -> None:
    """Powers of two, so that rounding does not matter either."""
    np.testing.assert_allclose(NORMALIZATIONS[name](x * scale), NORMALIZATIONS[name](x), atol=1e-9)


@pytest.mark.parametrize("name", ["minmax", "max", "pas", "ivr"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_becomes_zero(name: str, bad: float) -> None:
    x = np.ones((4, 4))
    x[0, 0] = 3
    x[1, 2] = bad
    found = prepare(x, Recipe(normalize=name), (8, 8))
    assert found.shape == (8, 8)
    assert not found.any()


@pytest.mark.parametrize("name", ["minmax", "ivr"])
def test_a_constant_map_becomes_zero(name: str) -> None:
    constant = np.full((4, 4), 7.0)
    assert is_constant(constant)
    assert not prepare(constant, Recipe(normalize=name), (8, 8)).any()


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_resize_is_opencvs_and_keeps_the_precision(interpolation: str) -> None:
    x = np.random.default_rng(0).normal(size=(7, 9))
    flag = cv2.INTER_LINEAR if interpolation == "bilinear" else cv2.INTER_CUBIC
    np.testing.assert_array_equal(
        resize(x, (30, 20), interpolation), cv2.resize(x, (30, 20), interpolation=flag)
    )
    assert resize(x.astype(np.float32), (30, 20), interpolation).dtype == np.float32
    assert resize(x, (9, 7), interpolation) is x


def test_bilinear_resize_agrees_with_torch() -> None:
    """An independent implementation, with the same alignment of pixel centres."""
    import torch

    x = np.random.default_rng(1).normal(size=(14, 14))
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(x)[None, None], size=(224, 224), mode="bilinear", align_corners=False
    )
    np.testing.assert_allclose(resize(x, (224, 224), "bilinear"), expected[0, 0].numpy(), atol=1e-5)


def test_a_map_as_it_is_is_clipped_after_a_bicubic_resize() -> None:
    x = np.zeros((8, 8))
    x[4, 4] = 1
    assert resize(x, (64, 64), "bicubic").min() < 0
    found = prepare(x, Recipe("bicubic", "none"), (64, 64))
    assert found.min() == 0
    assert found.max() <= 1
