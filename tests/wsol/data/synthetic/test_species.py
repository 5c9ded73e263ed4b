"""The roster of invented species: counts, names, and what sets them apart."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from wsol.data.synthetic.anatomy import Pose, place
from wsol.data.synthetic.birds import paint_bird
from wsol.data.synthetic.families import FAMILIES
from wsol.data.synthetic.species import SPECIES_LIMIT, roster


@pytest.mark.parametrize("count", [2, 3, 4, 5, 11, 12, 13, 41, 42, 43, 100, 199, 200])
def test_every_count_gives_distinct_species(count: int) -> None:
    birds = roster(count)
    assert len(birds) == count
    assert len({bird.name for bird in birds}) == count
    sizes = Counter(bird.family.plural for bird in birds)
    assert max(sizes.values()) - min(sizes.values()) <= 1
    assert [b.family for b in birds] == sorted((b.family for b in birds), key=FAMILIES.index)


def test_the_default_is_four_families_in_two_orders() -> None:
    families = Counter(bird.family.plural for bird in roster(12))
    assert list(families.values()) == [3, 3, 3, 3]
    assert len({bird.family.order for bird in roster(12)}) == 2


@pytest.mark.parametrize("count", [-1, 0, 1, SPECIES_LIMIT + 1])
def test_counts_out_of_range_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"from 2 to {SPECIES_LIMIT}, not {count}"):
        roster(count)


def test_a_family_lies_in_one_order() -> None:
    assert len({family.plural for family in FAMILIES}) == len(FAMILIES)
    assert all(size == 2 for size in Counter(family.order for family in FAMILIES).values())


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_species_of_a_family_differ_in_small_parts_that_can_be_seen(family: object) -> None:
    """One individual in one pose, painted as each species: alike for the most part, never the same."""
    birds = [bird for bird in roster(SPECIES_LIMIT) if bird.family is family]
    assert len(birds) >= 14
    action = birds[0].family.habits[0][0]
    corner, side = np.full(2, 16.0), 112
    body = place(birds[0].family.shape, Pose(action, mirror=False), corner, side - corner)
    pictures, masks = [], []
    for bird in birds:
        paint, alpha = paint_bird(np.random.default_rng(0), bird, body, side, side)
        pictures.append(paint)
        masks.append(alpha >= 0.5)
    assert all(np.array_equal(mask, masks[0]) for mask in masks)
    area = masks[0].sum()
    for i, first in enumerate(pictures):
        for second in pictures[:i]:
            differs = np.abs(first - second).max(axis=2) > 40
            assert 0.04 * area < differs.sum() < 0.35 * area
