"""The learning rate against closed formulas."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsol.config import Schedule
from wsol.training.schedules import make_schedule


def test_step_divides_at_its_milestones() -> None:
    at = make_schedule(Schedule.of("step", milestones=(2, 3), factor=0.1), epochs=4, steps_per_epoch=5)
    assert [at(s) for s in (0, 9, 10, 14, 15, 19)] == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])


def test_the_paper_s_schedule_is_the_default() -> None:
    at = make_schedule(Schedule(), epochs=100, steps_per_epoch=187)
    assert at(80 * 187 - 1) == 1
    assert at(80 * 187) == pytest.approx(0.1)


def test_cosine_goes_from_one_to_its_end() -> None:
    at = make_schedule(Schedule.of("cosine", final=0.2), epochs=10, steps_per_epoch=4)
    assert at(0) == 1
    assert at(20) == pytest.approx(0.6)
    assert at(39) == pytest.approx(0.2 + 0.4 * (1 + math.cos(math.pi * 39 / 40)))


def test_warm_up_rises_step_by_step_and_never_from_nothing() -> None:
    at = make_schedule(Schedule.of("step", milestones=(9,), warmup_epochs=0.5), epochs=10, steps_per_epoch=8)
    assert [at(s) for s in range(6)] == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])


@given(
    name=st.sampled_from(["step", "cosine"]),
    epochs=st.integers(1, 50),
    steps=st.integers(1, 40),
    warmup=st.floats(0, 60),
)
def test_every_step_has_a_rate_between_none_and_the_full_one(
    name: str, epochs: int, steps: int, warmup: float
) -> None:
    at = make_schedule(Schedule.of(name, warmup_epochs=warmup), epochs, steps)
    factors = [at(s) for s in range(epochs * steps)]
    assert all(0 < f <= 1 for f in factors)
    rising = math.ceil(warmup * steps)
    assert all(a >= b for a, b in zip(factors[rising:], factors[rising + 1 :], strict=False))
