"""A comparison as one HTML file, in the style of the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wsol.scoring.metrics import Metric
from wsol.views.comparison_formats import shown_metrics, value_text
from wsol.views.dot_chart import Dot, dot_chart
from wsol.views.html_file import render_html

if TYPE_CHECKING:
    from wsol.views.comparison import ComparedRow

TITLE = "Localization, side by side"
UNNAMED = "-"  # the backbone of a published row that names none


def comparison_page(rows: Sequence[ComparedRow], caption: str) -> str:
    """The table, which sorts, what a reader must know of it, and a chart of each figure."""
    shown = shown_metrics(rows)
    backbones = list(dict.fromkeys(row.backbone for row in rows if row.backbone != UNNAMED))
    notes = caption.replace("; and ", ", and ").split("; ")
    return render_html(
        "comparison.html",
        ["page.js"],
        {
            "title": TITLE,
            "facts": [
                f"{len(rows)} row{'s' if len(rows) != 1 else ''}",
                ", ".join(backbones) if len(backbones) < 5 else f"{len(backbones)} backbones",
                notes[0],
            ],
            "sections": [("results", "Results"), ("charts", "Charts"), ("meanings", "Figures")],
            "notes": [_sentence(note) for note in notes],
            "figures": [(metric.short, metric.long, metric.meaning) for metric in shown],
            "rows": [(row, [_cell(row, metric) for metric in shown]) for row in rows],
            "charts": [_chart(rows, metric) for metric in shown],
        },
    )


def _cell(row: ComparedRow, metric: Metric) -> dict[str, Any]:
    sample, p = row.figures.get(metric.key), row.p.get(metric.key)
    if sample is None:
        return {"text": ""}
    runs = f"{sample.n} run{'s' if sample.n != 1 else ''}"
    return {
        "text": value_text(sample, " ± ") + ("*" if row.significant(metric.key) else ""),
        "best": metric.key in row.best,
        "told": runs if p is None else f"{runs}, p = {p:.3g} against the first row",
    }


def _chart(rows: Sequence[ComparedRow], metric: Metric) -> Any:
    dots = []
    for row in rows:
        sample = row.figures.get(metric.key)
        if sample is not None:
            dots.append(
                Dot(
                    f"{row.backbone} {row.method}, {row.marked_source}".removeprefix(f"{UNNAMED} "),
                    sample.mean,
                    0.0 if math.isnan(sample.std) else sample.std,
                    grey=row.published,
                    filled=metric.key in row.best,
                    starred=row.significant(metric.key),
                )
            )
    return dot_chart(f"{metric.long[:1].upper()}{metric.long[1:]} ({metric.unit})", dots)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
