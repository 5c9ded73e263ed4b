"""Charts of the report: one record of what is drawn, for the page and for a paper.

`svg` gives inline SVG that takes its colours from the page, so it follows light and dark mode. The page's
script adds the read-out under the pointer from `data-chart`, and moves the line `.cursor` of a chart over
thresholds with the slider. `draw` puts the same lines on matplotlib axes in the style of all figures.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from wsol.views.figure_style import (
    COLUMN,
    DASHES,
    Format,
    line_look,
    new_figure,
    paper_style,
    save_figure,
    without_math,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 380, 240
TONES = 6  # colours that the page's style names: the first of the figures' style
LEFT, RIGHT, TOP, BOTTOM = 50, 10, 10, 40


@dataclass(frozen=True)
class Series:
    """A line: `tone` picks its colour (0...5), `dashed` tells a second line of that colour apart.

    `listed`: whether the legend names it; a legend of many runs names each run once.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    tone: int = 0
    dashed: bool = False
    listed: bool = True


@dataclass(frozen=True)
class LineChart:
    """A chart of lines; points that are no numbers are left out.

    name: of its file. cursor: a line that the page's slider moves. whole: x counts something, as epochs do.
    """

    name: str
    title: str
    series: Sequence[Series]
    x_label: str
    y_label: str
    y_range: tuple[float, float] | None = None
    cursor: bool = False
    whole: bool = False

    def kept(self) -> list[Series]:
        """The lines that have points."""
        return [s for s in map(_finite, self.series) if s.x]

    def svg(self) -> Markup:
        """'' where nothing is left to draw."""
        kept = self.kept()
        if not kept:
            return Markup("")
        x_range = min(min(s.x) for s in kept), max(max(s.x) for s in kept)
        if x_range[0] == x_range[1]:
            x_range = x_range[0] - 0.5, x_range[1] + 0.5
        spread = _padded(min(min(s.y) for s in kept), max(max(s.y) for s in kept))
        axes = _Axes(x_range, self.y_range or spread)
        parts = [axes.grid(self.x_label, self.y_label, 1 if self.whole else 0)]
        for s in kept:
            points = " ".join(f"{axes.px(x):.1f},{axes.py(y):.1f}" for x, y in zip(s.x, s.y, strict=True))
            if len(s.x) == 1:
                x, y = points.split(",")
                parts.append(f'<circle class="dot tone{s.tone % TONES}" cx="{x}" cy="{y}" r="3"/>')
            else:
                parts.append(f'<polyline class="{_style(s)}" points="{points}"/>')
        if self.cursor:
            parts.append(f'<line class="cursor" y1="{TOP}" y2="{HEIGHT - BOTTOM}" x1="-9" x2="-9"/>')
        parts.append(f'<line class="hover" y1="{TOP}" y2="{HEIGHT - BOTTOM}" x1="-9" x2="-9"/>')
        data = {
            "x": list(x_range),
            "px": [LEFT, WIDTH - RIGHT],
            "xLabel": self.x_label,
            "series": [{"name": s.name, "x": list(s.x), "y": list(s.y)} for s in kept],
        }
        return _figure(self.title, "".join(parts), kept, f' data-chart="{escape(json.dumps(data))}"')

    def draw(self, axes: Axes) -> None:
        kept = self.kept()
        by_run = any(s.dashed for s in kept)  # then dashes tell two lines of a run apart, not the runs
        for s in kept:
            look: dict[str, Any] = line_look(s.tone)
            if by_run:
                look["linestyle"] = DASHES[1 if s.dashed else 0]
            dots: dict[str, Any] = {"marker": "o" if len(s.x) < 15 else "", "markersize": 2}
            axes.plot(s.x, s.y, label=without_math(s.name) if s.listed else "_", **look, **dots)
        if self.y_range:
            axes.set_ylim(*self.y_range)
        axes.set(xlabel=self.x_label, ylabel=self.y_label)
        axes.locator_params(axis="x", integer=self.whole)


@dataclass(frozen=True)
class Histogram:
    """Outlined bars of several counts over the same bins, as shares in percent; `Series.y` are the counts."""

    name: str
    title: str
    edges: Sequence[float]
    counts: Sequence[Series]
    x_label: str

    def kept(self) -> list[Series]:
        """Shares instead of counts, of those that count anything."""
        return [replace(s, y=[100 * v / sum(s.y) for v in s.y]) for s in self.counts if sum(s.y)]

    def svg(self) -> Markup:
        """'' where there is nothing to count."""
        kept, edges = self.kept(), self.edges
        if not kept:
            return Markup("")
        axes = _Axes((edges[0], edges[-1]), (0, _padded(0, max(max(s.y) for s in kept))[1]))
        parts = [axes.grid(self.x_label, SHARE)]
        for s in kept:
            path = [f"M{axes.px(edges[0]):.1f},{axes.py(0):.1f}"]
            for left, right, value in zip(edges[:-1], edges[1:], s.y, strict=True):
                path.append(
                    f"L{axes.px(left):.1f},{axes.py(value):.1f}L{axes.px(right):.1f},{axes.py(value):.1f}"
                )
            path.append(f"L{axes.px(edges[-1]):.1f},{axes.py(0):.1f}Z")
            parts.append(f'<path class="bars tone{s.tone % TONES}" d="{"".join(path)}"/>')
        return _figure(self.title, "".join(parts), kept)

    def draw(self, axes: Axes) -> None:
        for s in self.kept():
            look = line_look(s.tone)
            axes.stairs(s.y, self.edges, fill=True, alpha=0.16, color=look["color"])
            axes.stairs(s.y, self.edges, label=without_math(s.name), lw=1.2, **look)
        axes.set(xlabel=self.x_label, ylabel=SHARE)
        axes.set_ylim(bottom=0)


Chart = LineChart | Histogram
SHARE = "share of values (%)"


def write_charts(charts: Sequence[Chart], folder: Path, formats: Sequence[Format]) -> list[Path]:
    """Each chart as a figure of a column's width, by its name. One with nothing to draw has no file."""
    paths = []
    for chart in charts:
        if not chart.kept():
            continue
        with paper_style():
            figure = new_figure(COLUMN, title=chart.title)
            axes = figure.subplots()
            chart.draw(axes)
            if axes.get_legend_handles_labels()[0]:
                figure.legend(loc="outside lower center", ncols=2)
            paths += save_figure(figure, folder, chart.name, formats)
    return paths


def ticks(low: float, high: float, about: int = 5, least: float = 0) -> list[float]:
    """Round numbers that cover [low, high]: steps of 1, 2 or 5 times a power of ten, at least `least`."""
    if not high > low:
        return [low]
    rough = max((high - low) / about, least)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


@dataclass(frozen=True)
class _Axes:
    x: tuple[float, float]
    y: tuple[float, float]

    def px(self, x: float) -> float:
        return LEFT + (x - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)

    def py(self, y: float) -> float:
        return HEIGHT - BOTTOM - (y - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM)

    def grid(self, x_label: str, y_label: str, least: float = 0) -> str:
        parts = []
        for v in ticks(*self.y):
            y = f"{self.py(v):.1f}"
            parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
            parts.append(f'<text class="tick" x="{LEFT - 6}" y="{y}" dy="4" text-anchor="end">{v:g}</text>')
        for v in ticks(*self.x, about=6, least=least):
            x = f"{self.px(v):.1f}"
            parts.append(
                f'<text class="tick" x="{x}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{v:g}</text>'
            )
        middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
        parts.append(
            f'<text class="label" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>'
        )
        turn = f"rotate(-90 11 {TOP + (HEIGHT - TOP - BOTTOM) / 2})"
        parts.append(
            f'<text class="label" x="11" y="{TOP + (HEIGHT - TOP - BOTTOM) / 2}" '
            f'text-anchor="middle" transform="{turn}">{escape(y_label)}</text>'
        )
        return "".join(parts)


def _figure(title: str, drawing: str, series: Sequence[Series], extra: str = "") -> Markup:
    legend = "".join(
        f'<li><svg viewBox="0 0 18 8" aria-hidden="true"><line class="{_style(s)}" x1="0" x2="18" y1="4" '
        f'y2="4"/></svg>{escape(s.name)}</li>'
        for s in series
        if s.listed
    )
    return Markup(
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}"{extra}>{drawing}</svg>'
        f'<ul class="legend">{legend}</ul></figure>'
    )


def _style(s: Series) -> str:
    return f"line tone{s.tone % TONES}" + (" dashed" if s.dashed else "")


def _finite(s: Series) -> Series:
    pairs = [(x, y) for x, y in zip(s.x, s.y, strict=True) if math.isfinite(x) and math.isfinite(y)]
    return replace(s, x=[p[0] for p in pairs], y=[p[1] for p in pairs])


def _padded(low: float, high: float) -> tuple[float, float]:
    """The range with its ends moved out to the next round number."""
    if low == high:
        low, high = low - 0.5, high + 0.5
    marks = ticks(low, high)
    step = marks[1] - marks[0] if len(marks) > 1 else high - low
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
