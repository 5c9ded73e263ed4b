from __future__ import annotations

import numpy as np

from wsol.scoring.bootstrap import intervals


def test_wide_enough_for_a_binomial_share() -> None:
    """The interval of a share p of n images is close to p +- 1.96 sqrt(p (1 - p) / n)."""
    hits = np.zeros((2000, 2), bool)
    hits[:600, 0] = True
    hits[:1900, 1] = True
    low, high = intervals(hits, draws=4000)
    for column, p in enumerate((0.3, 0.95)):
        expected = 1.96 * np.sqrt(p * (1 - p) / 2000)
        np.testing.assert_allclose([p - low[column], high[column] - p], expected, rtol=0.12)


def test_certain_columns_have_no_width_and_seeds_repeat() -> None:
    hits = np.column_stack([np.ones(5000, bool), np.zeros(5000, bool), np.arange(5000) % 2 == 0])
    first, again, other = intervals(hits, seed=1), intervals(hits, seed=1), intervals(hits, seed=2)
    np.testing.assert_array_equal(first[:, :2], [[1, 0], [1, 0]])
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_agrees_with_drawing_one_image_at_a_time() -> None:
    rng = np.random.default_rng(0)
    hits = rng.random((300, 1)) < 0.4
    means = [hits[rng.integers(0, 300, 300), 0].mean() for _ in range(4000)]
    np.testing.assert_allclose(
        intervals(hits, draws=4000)[:, 0], np.quantile(means, [0.025, 0.975]), atol=0.01
    )
