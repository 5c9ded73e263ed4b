"""Charts: round ticks, points where they belong, and text that stays text."""

from __future__ import annotations

import itertools
import json
import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from wsol.views.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TONES,
    TOP,
    WIDTH,
    Chart,
    Histogram,
    LineChart,
    Series,
    ticks,
    write_charts,
)
from wsol.views.figure_style import COLOURS


def test_points_lie_where_their_values_say() -> None:
    chart = LineChart("n", "t", [Series("a", [0, 5, 10], [0, 100, 50])], "x", "y", (0, 100)).svg()
    match = re.search(r'points="([^"]+)"', chart)
    assert match
    points = [tuple(map(float, p.split(","))) for p in match[1].split()]
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    half = TOP + (HEIGHT - TOP - BOTTOM) / 2
    assert points == [(LEFT, HEIGHT - BOTTOM), (middle, TOP), (WIDTH - RIGHT, half)]


def test_values_that_are_no_numbers_are_left_out() -> None:
    chart = LineChart(
        "n", "t", [Series("a", [1, 2, 3], [1.0, float("nan"), 3.0]), Series("b", [], [])], "x", "y"
    ).svg()
    match = re.search(r'data-chart="([^"]+)"', chart)
    assert match
    data = json.loads(unescape(match[1]))
    assert data["series"] == [{"name": "a", "x": [1, 3], "y": [1.0, 3.0]}]
    assert LineChart("n", "t", [Series("b", [], [])], "x", "y").svg() == ""
    assert Histogram("n", "t", [0, 1], [Series("b", [0], [0])], "x").svg() == ""


def test_a_single_point_and_a_level_line_are_drawn() -> None:
    assert "<circle" in LineChart("n", "t", [Series("a", [3], [2])], "x", "y").svg()
    assert "<polyline" in LineChart("n", "t", [Series("a", [1, 2], [2, 2])], "x", "y").svg()


def test_names_are_escaped_and_the_markup_is_well_formed() -> None:
    nasty = "<b>\"'&</svg>"
    for chart in (
        LineChart("n", nasty, [Series(nasty, [0, 1], [0, 1], 7, True)], nasty, nasty, cursor=True),
        Histogram("n", nasty, [0, 0.5, 1], [Series(nasty, [0, 0.5], [3, 1], 9)], nasty),
    ):
        assert "<b>" not in chart.svg()
        ElementTree.fromstring(str(chart.svg()))


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


def test_charts_become_figures_with_the_same_points(tmp_path: Path) -> None:
    charts: list[Chart] = [
        LineChart(
            "lines", "t", [Series("a", [0, 5], [1, 2]), Series("b", [0, 5], [3, 4], 1, True)], "x", "y"
        ),
        Histogram("bars", "t", [0, 1, 2], [Series("a", [0, 1], [3, 1])], "x"),
        LineChart("nothing", "t", [Series("a", [], [])], "x", "y"),
    ]
    assert [p.name for p in write_charts(charts, tmp_path, ("svg", "pdf"))] == [
        "lines.svg",
        "lines.pdf",
        "bars.svg",
        "bars.pdf",
    ]
    axes = Figure().subplots()
    charts[0].draw(axes)
    assert [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in axes.lines] == [  # type: ignore[union-attr]
        ([0, 5], [1, 2]),
        ([0, 5], [3, 4]),
    ]
    assert charts[1].kept()[0].y == [75, 25]


def test_the_page_has_the_colours_of_the_figures(repository: Path) -> None:
    css = (repository / "wsol" / "views" / "templates" / "page.css").read_text()
    light = css.partition("@media")[0]
    assert [re.search(rf"--tone{i}: (#\w+)", light)[1] for i in range(TONES)] == list(COLOURS[:TONES])  # type: ignore[index]
