"""Records: boxes and the digest of a data set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from wsol.records import Box, DataIndex, Sample

numbers = st.floats(-1e4, 1e4, allow_nan=False)


@given(st.tuples(numbers, numbers, numbers, numbers), st.floats(1, 1e3), st.floats(1, 1e3))
def test_clip_stays_inside_and_is_idempotent(
    box: tuple[float, float, float, float], w: float, h: float
) -> None:
    clipped = Box(*box).clip(w, h)
    assert 0 <= clipped.x0 <= w
    assert 0 <= clipped.x1 <= w
    assert 0 <= clipped.y0 <= h
    assert 0 <= clipped.y1 <= h
    assert clipped.clip(w, h) == clipped


def test_area_of_an_inverted_box_is_zero() -> None:
    assert Box(0, 0, 4, 3).area == 12
    assert Box(4, 0, 0, 3).area == 0


def make_index(*samples: Sample) -> DataIndex:
    return DataIndex("test", Path("here"), samples, ("a", "b"))


def test_digest_ignores_place_and_order_but_nothing_else() -> None:
    one = Sample("a/1.jpg", Path("x/a/1.jpg"), 0, (Box(0, 0, 4, 4),), "train")
    two = Sample("b/2.jpg", Path("x/b/2.jpg"), 1, (Box(1, 1, 5, 5),), "test")
    digest = make_index(one, two).digest()
    moved = replace(one, path=Path("elsewhere/1.jpg"))
    assert make_index(two, moved).digest() == digest
    for changed in (
        replace(one, label=1),
        replace(one, split="test"),
        replace(one, boxes=(Box(0, 0, 4, 5),)),
        replace(one, name="a/3.jpg"),
    ):
        assert make_index(changed, two).digest() != digest
