"""Whether an attention acts: each figure against a plain loop, and the verdict on masks made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from wsol.localization.predictions import Flag, Predictions
from wsol.scoring.mask_effect import (
    MaskEffect,
    control_logits,
    measure_masks,
    rank_correlation,
    true_class_auc,
)

NUM, CLASSES = 60, 8


class Made:
    """What `measure_masks` reads of predictions."""

    def __init__(self, masks: NDArray[np.float64] | None, u: NDArray[np.float64], labels: NDArray[np.int64]):
        self.masks = masks
        self.scores = u if masks is None else u * masks
        self.labels = labels
        self.flags = np.full(len(u), int(Flag.WRITTEN), dtype=np.uint8)


@pytest.fixture
def made() -> Made:
    rng = np.random.default_rng(3)
    masks = rng.uniform(0.2, 0.9, (NUM, CLASSES)).round(1)  # with equal ones
    return Made(masks, rng.normal(size=(NUM, CLASSES)), rng.integers(0, CLASSES, NUM))


def measured(made: Made) -> MaskEffect:
    effect = measure_masks(cast(Predictions, made))
    assert effect is not None
    return effect


def test_auc_counts_pairs(made: Made) -> None:
    assert made.masks is not None
    expected = []
    for v, y in zip(made.masks, made.labels, strict=True):
        pairs = [1.0 if v[y] > v[c] else 0.5 if v[y] == v[c] else 0.0 for c in range(CLASSES) if c != y]
        expected.append(sum(pairs) / len(pairs))
    np.testing.assert_allclose(true_class_auc(made.masks, made.labels), expected)
    effect = measured(made)
    assert effect.auc == pytest.approx(np.mean(expected))
    rng = np.random.default_rng(1)
    means = [np.mean(rng.choice(expected, NUM)) for _ in range(4000)]
    np.testing.assert_allclose(effect.auc_interval, np.quantile(means, [0.025, 0.975]), atol=0.01)


def test_control_is_the_network_with_the_mean_mask(made: Made) -> None:
    """z = v u, so the control's logits are mean(v) u."""
    assert made.masks is not None
    u = made.scores / made.masks
    control = made.masks.mean(axis=1, keepdims=True) * u
    np.testing.assert_allclose(control_logits(made.scores, made.masks), control)
    effect = measured(made)
    z, y = made.scores.argmax(axis=1), made.labels
    assert effect.changed == pytest.approx(np.mean(z != control.argmax(axis=1)))
    assert effect.gained == pytest.approx(np.mean((z == y) & (control.argmax(axis=1) != y)))
    assert effect.lost == pytest.approx(np.mean((z != y) & (control.argmax(axis=1) == y)))
    correlations = [spearmanr(a, b).statistic for a, b in zip(made.scores, control, strict=True)]
    np.testing.assert_allclose(rank_correlation(made.scores, control), correlations)
    assert effect.correlation == pytest.approx(np.mean(correlations))


def test_spread(made: Made) -> None:
    assert made.masks is not None
    effect = measured(made)
    assert effect.mean == pytest.approx(made.masks.mean())
    assert effect.std_channels == pytest.approx(np.mean([v.std() for v in made.masks]))
    assert effect.std_images == pytest.approx(np.mean([v.std() for v in made.masks.T]))
    assert (effect.least, effect.most) == (made.masks.min(), made.masks.max())


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("constant", "acts as a constant"),
        ("fixed", "acts as fixed weights of the classes"),
        ("blind", "acts without knowing the class"),
        ("helpful", "knows something of the class"),
        ("harmful", "acts against the true class"),
    ],
)
def test_verdict(kind: str, words: str, made: Made) -> None:
    rng = np.random.default_rng(4)
    noise = rng.uniform(-0.1, 0.1, (NUM, CLASSES))
    true = np.eye(CLASSES)[made.labels]
    masks = {
        "constant": 0.5 + 0.005 * noise,
        "fixed": 0.5 + noise[:1] + 0.01 * noise,
        "blind": 0.5 + noise,
        "helpful": 0.5 + noise + 0.1 * true,
        "harmful": 0.5 + noise - 0.1 * true,
    }[kind]
    effect = measured(Made(masks, made.scores, made.labels))
    assert effect.kind == kind
    assert words in effect.verdict


def test_a_small_mask_that_decides_is_no_constant(made: Made) -> None:
    """Logits that differ by less than the mask: its deviation is 1 % of its mean, and most classes change."""
    rng = np.random.default_rng(4)
    masks = 0.5 + rng.uniform(-0.01, 0.01, (NUM, CLASSES))
    close = 1 + 1e-3 * rng.normal(size=(NUM, CLASSES))
    effect = measured(Made(masks, close, made.labels))
    assert effect.std_channels < 0.02 * effect.mean
    assert effect.changed > 0.5
    assert effect.kind == "blind"


def test_images_that_do_not_count(made: Made) -> None:
    assert made.masks is not None
    made.flags[0] |= Flag.UNREADABLE
    made.masks[1, 2] = np.nan
    assert measured(made).num_images == NUM - 2
    assert measure_masks(cast(Predictions, Made(None, made.scores, made.labels))) is None
    made.flags[:] |= np.uint8(Flag.UNREADABLE)
    assert measure_masks(cast(Predictions, made)) is None


def test_equal_logits_correlate_fully(tmp_path: Path) -> None:
    same = np.zeros((2, 4))
    np.testing.assert_array_equal(rank_correlation(same, same), [1, 1])
