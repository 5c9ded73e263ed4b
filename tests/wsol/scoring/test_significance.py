from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from wsol.scoring.significance import Sample, p_value


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Sample(54.97, 0.35, 3), Sample(52.62, 0.38, 3), 0.0014),
        (Sample(59.66, 0.63, 3), Sample(58.72, 0.23, 3), 0.0722),
        (Sample(54.90, 0.18, 3), Sample(54.34, math.nan, 1), 0.0328),
    ],
)
def test_check_vectors(a: Sample, b: Sample, expected: float) -> None:
    assert p_value(a, b) == pytest.approx(expected, abs=5e-5)
    assert p_value(b, a) == p_value(a, b)


def test_from_values_as_scipy_has_it() -> None:
    a, b = [50.1, 51.7, 50.9, 52.0], [49.2, 50.0, 48.8]
    assert p_value(Sample.of(a), Sample.of(b)) == pytest.approx(stats.ttest_ind(a, b).pvalue, rel=1e-9)
    assert p_value(Sample.of(a), Sample.of([49.0])) == pytest.approx(
        stats.ttest_1samp(a, 49.0).pvalue, rel=1e-9
    )


def test_the_deviation_is_the_samples() -> None:
    assert Sample.of([1.0, 2.0, 4.0]).std == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert math.isnan(Sample.of([3.0]).std)


def test_where_no_test_is_possible() -> None:
    assert p_value(Sample.of([1.0]), Sample.of([2.0])) is None
    assert p_value(Sample(5, 0, 3), Sample(5, 0, 3)) == 1.0
    assert p_value(Sample(5, 0, 3), Sample(6, 0, 3)) == 0.0
    assert p_value(Sample(5, 0, 3), Sample(6, math.nan, 1)) == 0.0
