"""Charts: round ticks, points where they belong, and text that stays text."""

from __future__ import annotations

import itertools
import json
import re
from html import unescape
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from wsol.views.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Series, histogram, line_chart, ticks


def test_points_lie_where_their_values_say() -> None:
    chart = line_chart("t", [Series("a", [0, 5, 10], [0, 100, 50])], "x", "y", (0, 100))
    match = re.search(r'points="([^"]+)"', chart)
    assert match
    points = [tuple(map(float, p.split(","))) for p in match[1].split()]
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    half = TOP + (HEIGHT - TOP - BOTTOM) / 2
    assert points == [(LEFT, HEIGHT - BOTTOM), (middle, TOP), (WIDTH - RIGHT, half)]


def test_values_that_are_no_numbers_are_left_out() -> None:
    chart = line_chart("t", [Series("a", [1, 2, 3], [1.0, float("nan"), 3.0]), Series("b", [], [])], "x", "y")
    match = re.search(r'data-chart="([^"]+)"', chart)
    assert match
    data = json.loads(unescape(match[1]))
    assert data["series"] == [{"name": "a", "x": [1, 3], "y": [1.0, 3.0]}]
    assert line_chart("t", [Series("b", [], [])], "x", "y") == ""
    assert histogram("t", [0, 1], [Series("b", [0], [0])], "x") == ""


def test_a_single_point_and_a_level_line_are_drawn() -> None:
    assert "<circle" in line_chart("t", [Series("a", [3], [2])], "x", "y")
    assert "<polyline" in line_chart("t", [Series("a", [1, 2], [2, 2])], "x", "y")


def test_names_are_escaped_and_the_markup_is_well_formed() -> None:
    nasty = "<b>\"'&</svg>"
    for chart in (
        line_chart(nasty, [Series(nasty, [0, 1], [0, 1], 7, True)], nasty, nasty, cursor=True),
        histogram(nasty, [0, 0.5, 1], [Series(nasty, [0, 0.5], [3, 1], 9)], nasty),
    ):
        assert "<b>" not in chart
        ElementTree.fromstring(str(chart))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_even_and_inside(low: float, span: float) -> None:
    marks = ticks(low, low + span)
    slack = span * 1e-6
    assert all(low - slack <= m <= low + span + slack for m in marks)
    assert 2 <= len(marks) <= 7
    steps = [b - a for a, b in itertools.pairwise(marks)]
    assert max(steps) - min(steps) <= slack


def test_epochs_are_counted_whole() -> None:
    assert ticks(1, 3, about=6, least=1) == [1, 2, 3]
