from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from wsol.localization.predictions import Predictions
from wsol.records import Box
from wsol.scoring.mask_distribution import default_classes, distribution, rows_with_masks

Made = Callable[..., Predictions]


@pytest.fixture
def with_masks(make_predictions: Made) -> Predictions:
    labels = [0, 0, 1, 2]
    masks = np.array([[0.1, 0.2, 0.3], [0.3, 0.4, 0.5], [0.9, 0.8, 0.7], [0.5, 0.5, 0.5]])
    return make_predictions(np.zeros((4, 4, 4)), labels, [[Box(0, 0, 8, 8)]] * 4, np.zeros((4, 3)), masks)


def test_by_hand(with_masks: Predictions) -> None:
    found = distribution(with_masks, [0, 1])
    assert found.classes == ("class 0", "class 1")
    np.testing.assert_allclose(found.means, [[0.2, 0.3, 0.4], [0.9, 0.8, 0.7]], rtol=1e-6)
    assert found.counts.sum(axis=1).tolist() == [6, 3]
    assert found.channels.tolist() == [0, 1, 2]
    np.testing.assert_allclose(found.quantiles[:, 0], [0.1, 0.25, 0.4, 0.6, 0.9], rtol=1e-6)


def test_equal_masks_have_a_histogram(make_predictions: Made) -> None:
    same = make_predictions(
        np.zeros((2, 4, 4)), [0, 1], [[Box(0, 0, 8, 8)]] * 2, np.zeros((2, 3)), np.full((2, 3), 0.5)
    )
    assert distribution(same, [0]).counts.sum() == 3


def test_without_masks(make_predictions: Made) -> None:
    plain = make_predictions(np.zeros((1, 4, 4)), [0], [[Box(0, 0, 8, 8)]], np.zeros((1, 3)))
    with pytest.raises(ValueError, match="no attention masks"):
        distribution(plain, [0])


def test_unreadable_images_and_masks_of_nan_are_left_out(make_predictions: Made) -> None:
    masks = np.array([[0.1, 0.2, 0.3], [0.3, 0.4, 0.5], [np.nan, 0.4, 0.5], [0.9, 0.9, 0.9], [0.7, 0.6, 0.5]])
    labels, boxes = [0, 0, 0, 1, 2], [[Box(0, 0, 8, 8)]] * 5
    found = make_predictions(np.zeros((5, 4, 4)), labels, boxes, np.zeros((5, 3)), masks, failed=[3])
    assert rows_with_masks(found).tolist() == [0, 1, 4]
    assert default_classes(found) == [0, 2]
    shown = distribution(found, [0, 2])
    np.testing.assert_allclose(shown.means, [[0.2, 0.3, 0.4], [0.7, 0.6, 0.5]], rtol=1e-6)
    assert shown.counts.sum(axis=1).tolist() == [6, 3]
    np.testing.assert_allclose(shown.quantiles[:, 0], [0.1, 0.2, 0.3, 0.5, 0.7], rtol=1e-6)


def test_default_classes_are_spread(with_masks: Predictions) -> None:
    assert default_classes(with_masks, 2) == [0, 2]
    assert default_classes(with_masks) == [0, 1, 2]
