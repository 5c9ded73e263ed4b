"""Student's t-tests as the paper makes them: from means and sample standard deviations over seeds.

Two-sided. Against a method that was run again, two samples with equal variances:

    t = (m1 - m2) / sqrt(s^2 (1/n1 + 1/n2)),  s^2 = ((n1 - 1) s1^2 + (n2 - 1) s2^2) / (n1 + n2 - 2)

Against a published single figure m, one sample: t = (m1 - m) / (s1 / sqrt(n1)), n1 - 1 degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

ALPHA = 0.05


@dataclass(frozen=True)
class PairedDifference:
    """What n pairs of runs differ by, a minus b: the mean, its 95 % interval, and the two-sided p-value.

    A pair shares its seed, so it shares first weights, order of the images and augmentation. With
    d_i = a_i - b_i and s their sample deviation, the interval is mean(d) +- t_{n-1, 0.975} s / sqrt(n).
    """

    mean: float
    low: float
    high: float
    p: float
    n: int

    @classmethod
    def of(cls, a: Sequence[float], b: Sequence[float]) -> PairedDifference:
        """From the figures of n >= 2 pairs, in the same order.

        >>> d = PairedDifference.of([70.0, 72.0, 71.0], [69.0, 70.0, 71.0])
        >>> f"{d.mean:.2f} [{d.low:.2f}, {d.high:.2f}] p {d.p:.3f}"
        '1.00 [-1.48, 3.48] p 0.225'
        """
        if len(a) != len(b) or len(a) < 2:
            raise ValueError(f"two or more pairs are needed, got {len(a)} and {len(b)} figures")
        differences = np.subtract(a, b, dtype=np.float64)
        spread = Spread.of(differences.tolist())
        half = float(stats.t.ppf(1 - ALPHA / 2, spread.n - 1)) * spread.std / math.sqrt(spread.n)
        return cls(spread.mean, spread.mean - half, spread.mean + half, _one_sample(spread, 0.0), spread.n)


@dataclass(frozen=True)
class Spread:
    """A figure over n runs: its mean and its sample standard deviation, NaN where a single run has none."""

    mean: float
    std: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        std = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
        return cls(float(np.mean(values)), std, len(values))


def p_value(a: Spread, b: Spread) -> float | None:
    """The two-sided p-value between two figures; None where neither has a deviation to judge by.

    Where one of them is a single figure, it is taken as a published one: a one-sample test of the other.
    """
    if a.n < 2 and b.n < 2:
        return None
    if a.n < 2 or b.n < 2:
        many, single = (a, b) if a.n > 1 else (b, a)
        return _one_sample(many, single.mean)
    if a.std == b.std == 0:
        return 1.0 if a.mean == b.mean else 0.0
    test = stats.ttest_ind_from_stats(a.mean, a.std, a.n, b.mean, b.std, b.n, equal_var=True)
    return float(test.pvalue)


def _one_sample(sample: Spread, figure: float) -> float:
    if sample.std == 0:
        return 1.0 if sample.mean == figure else 0.0
    t = (sample.mean - figure) / (sample.std / math.sqrt(sample.n))
    return float(2 * stats.t.sf(abs(t), sample.n - 1))
