from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from wsol.scoring.significance import PairedDifference, Spread, p_value


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Spread(54.97, 0.35, 3), Spread(52.62, 0.38, 3), 0.0014),
        (Spread(59.66, 0.63, 3), Spread(58.72, 0.23, 3), 0.0722),
        (Spread(54.90, 0.18, 3), Spread(54.34, math.nan, 1), 0.0328),
    ],
)
def test_check_vectors(a: Spread, b: Spread, expected: float) -> None:
    assert p_value(a, b) == pytest.approx(expected, abs=5e-5)
    assert p_value(b, a) == p_value(a, b)


def test_from_values_as_scipy_has_it() -> None:
    a, b = [50.1, 51.7, 50.9, 52.0], [49.2, 50.0, 48.8]
    assert p_value(Spread.of(a), Spread.of(b)) == pytest.approx(stats.ttest_ind(a, b).pvalue, rel=1e-9)
    assert p_value(Spread.of(a), Spread.of([49.0])) == pytest.approx(
        stats.ttest_1samp(a, 49.0).pvalue, rel=1e-9
    )


def test_the_deviation_is_the_samples() -> None:
    assert Spread.of([1.0, 2.0, 4.0]).std == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert math.isnan(Spread.of([3.0]).std)


def test_where_no_test_is_possible() -> None:
    assert p_value(Spread.of([1.0]), Spread.of([2.0])) is None
    assert p_value(Spread(5, 0, 3), Spread(5, 0, 3)) == 1.0
    assert p_value(Spread(5, 0, 3), Spread(6, 0, 3)) == 0.0
    assert p_value(Spread(5, 0, 3), Spread(6, math.nan, 1)) == 0.0


def test_pairs_as_scipy_has_them() -> None:
    a, b = [70.2, 71.9, 69.5], [68.0, 70.6, 69.9]
    found, expected = PairedDifference.of(a, b), stats.ttest_rel(a, b)
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert found.mean == pytest.approx(np.mean(a) - np.mean(b))
    with pytest.raises(ValueError, match="two or more pairs"):
        PairedDifference.of([1.0], [2.0])
