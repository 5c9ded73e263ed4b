from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from wsol.localization.predictions import Predictions
from wsol.records import Box
from wsol.scoring.nll import analyze_nll, nll_mask, nll_mask_logit, nll_prediction

Made = Callable[..., Predictions]


def test_by_hand() -> None:
    """Three classes, label 0. Mask (0.5, 0.2, 0.8): odds 1, 1/4, 4."""
    label = np.array([0])
    mask = np.array([[0.5, 0.2, 0.8]])
    assert nll_mask(mask, label)[0] == pytest.approx(-math.log(0.5 / 1.5))
    assert nll_mask_logit(mask, label)[0] == pytest.approx(-math.log(1 / (1 + 0.25 + 4)))
    logits = np.array([[0.0, math.log(2), math.log(5)]])
    assert nll_prediction(logits, label)[0] == pytest.approx(math.log(8))


def test_uniform_is_ln_of_the_number_of_classes() -> None:
    labels = np.arange(7)
    for found in (
        nll_prediction(np.full((7, 200), 3.0), labels),
        nll_mask(np.full((7, 200), 0.5), labels),
        nll_mask_logit(np.full((7, 200), 0.5), labels),
    ):
        np.testing.assert_allclose(found, math.log(200))


def test_masks_of_exactly_0_and_1_stay_finite() -> None:
    mask = np.array([[0.0, 1.0, 0.0]])
    for label in (0, 1):
        assert np.isfinite(nll_mask(mask, np.array([label]))).all()
        assert np.isfinite(nll_mask_logit(mask, np.array([label]))).all()


def test_over_predictions(make_predictions: Made) -> None:
    """The mean over the images that could be read."""
    masks = np.array([[0.5, 0.2, 0.8], [0.5, 0.2, 0.8], [0.1, 0.9, 0.9]])
    predictions = make_predictions(
        np.zeros((3, 4, 4)), [0, 2, 0], [[Box(0, 0, 8, 8)]] * 3, np.zeros((3, 3)), masks, failed=[2]
    )
    found = analyze_nll(predictions)
    assert found["nll_prediction"] == pytest.approx(math.log(3))
    assert found["nll_mask"] == pytest.approx((math.log(3) + math.log(1.5 / 0.8)) / 2, rel=1e-6)
    assert found["nll_mask_logit"] == pytest.approx((math.log(5.25) + math.log(5.25 / 4)) / 2, rel=1e-6)


def test_not_applicable_without_attention(make_predictions: Made) -> None:
    predictions = make_predictions(np.zeros((1, 4, 4)), [0], [[Box(0, 0, 8, 8)]], np.zeros((1, 3)))
    found = analyze_nll(predictions)
    assert found["nll_mask"] is None
    assert found["nll_mask_logit"] is None
    assert found["nll_prediction"] is not None


def test_masks_above_1_have_no_logit(make_predictions: Made) -> None:
    """GCT's masks lie in (0, 2); cut at 1 they would give a figure that means nothing."""
    masks = np.array([[1.5, 0.5, 1.0]])
    found = analyze_nll(
        make_predictions(np.zeros((1, 4, 4)), [0], [[Box(0, 0, 8, 8)]], np.zeros((1, 3)), masks)
    )
    assert found["nll_mask"] == pytest.approx(math.log(2))
    assert found["nll_mask_logit"] is None


def test_a_mask_of_nan_does_not_hide_the_others(make_predictions: Made) -> None:
    masks = np.array([[0.5, 0.2, 0.8], [np.nan, 0.2, 0.8]])
    found = analyze_nll(
        make_predictions(np.zeros((2, 4, 4)), [0, 0], [[Box(0, 0, 8, 8)]] * 2, np.zeros((2, 3)), masks)
    )
    assert found["nll_mask"] == pytest.approx(math.log(3), rel=1e-6)
    assert found["nll_mask_logit"] == pytest.approx(math.log(5.25), rel=1e-6)
