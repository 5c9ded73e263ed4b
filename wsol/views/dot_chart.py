"""A figure of many rows as inline SVG: a dot with its deviation for each, named at the left."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from wsol.views.charts import ticks

WIDTH, LINE = 560, 22
LEFT, RIGHT, TOP, BOTTOM = 232, 26, 8, 26
LONGEST = 38  # letters of a name


@dataclass(frozen=True)
class Dot:
    """deviation: 0 where there is one value alone. filled: the best. starred: differs from the reference."""

    name: str
    value: float
    deviation: float = 0.0
    grey: bool = False
    filled: bool = False
    starred: bool = False


def dot_chart(title: str, dots: Sequence[Dot]) -> Markup:
    """One line for each dot, in their order; the axis covers all dots with their deviations."""
    height = TOP + LINE * len(dots) + BOTTOM
    low = min(dot.value - dot.deviation for dot in dots)
    high = max(dot.value + dot.deviation for dot in dots)
    room = 0.04 * (high - low) or 1.0
    low, high = low - room, high + room

    def px(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    parts = []
    for mark in ticks(low, high):
        x = f"{px(mark):.1f}"
        parts.append(f'<line class="rule" x1="{x}" x2="{x}" y1="{TOP}" y2="{height - BOTTOM}"/>')
        parts.append(
            f'<text class="tick" x="{x}" y="{height - BOTTOM + 16}" text-anchor="middle">{mark:g}</text>'
        )
    for place, dot in enumerate(dots):
        y = TOP + LINE * (place + 0.5)
        tone = "grey" if dot.grey else "tone0"
        name = textwrap.shorten(dot.name, LONGEST, placeholder="...")
        told = f"{dot.name}: {dot.value:.2f}" + (f" ± {dot.deviation:.2f}" if dot.deviation else "")
        parts.append(f'<g class="{tone}"><title>{escape(told)}</title>')
        parts.append(f'<text x="{LEFT - 8}" y="{y}" dy="4" text-anchor="end">{escape(name)}</text>')
        if dot.deviation:
            ends = px(dot.value - dot.deviation), px(dot.value + dot.deviation)
            parts.append(f'<line class="line" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y}" y2="{y}"/>')
        filled = "dot" if dot.filled else "dot open"
        parts.append(f'<circle class="{filled}" cx="{px(dot.value):.1f}" cy="{y}" r="4.5"/>')
        if dot.starred:
            parts.append(f'<text class="star" x="{px(dot.value) + 8:.1f}" y="{y}" dy="4">*</text>')
        parts.append("</g>")
    return Markup(
        f'<figure class="chart dots"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
        "</figure>"
    )
