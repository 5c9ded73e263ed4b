"""The rows of a comparison as Markdown, LaTeX, CSV or HTML."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from wsol.scoring.metrics import Metric, headline_metrics
from wsol.scoring.significance import Spread

if TYPE_CHECKING:
    from wsol.views.comparison import ComparedRow


def shown_metrics(rows: Sequence[ComparedRow]) -> list[Metric]:
    """The headline figures that at least one row has, in the order of every table."""
    return [m for key, m in headline_metrics().items() if any(key in row.figures for row in rows)]


def value_text(sample: Spread, plus_minus: str) -> str:
    """The mean, with its deviation where there is one."""
    return (
        f"{sample.mean:.2f}" if math.isnan(sample.std) else f"{sample.mean:.2f}{plus_minus}{sample.std:.2f}"
    )


def _cells(
    row: ComparedRow, shown: Sequence[Metric], plus_minus: str, bold: str, star: str, none: str = "-"
) -> list[str]:
    cells = []
    for key in (metric.key for metric in shown):
        sample = row.figures.get(key)
        if sample is None:
            cells.append(none)
            continue
        text = value_text(sample, plus_minus)
        text = bold.format(text) if key in row.best else text
        cells.append(text + (star if row.significant(key) else ""))
    return cells


def to_markdown(rows: Sequence[ComparedRow], caption: str) -> str:
    shown = shown_metrics(rows)
    head = ["backbone", "method", "from", *(m.short for m in shown)]
    lines = [head, ["---"] * 3 + ["---:"] * len(shown)]
    lines += [
        [r.backbone, r.method, r.marked_source, *_cells(r, shown, " ± ", "**{}**", "\\*")] for r in rows
    ]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{table}\n\n{caption.replace('*', chr(92) + '*')}\n"


def to_html(rows: Sequence[ComparedRow], caption: str) -> str:
    """For notebooks."""
    shown = shown_metrics(rows)
    head = ["backbone", "method", "from", *(m.short for m in shown)]
    body = [
        [*map(escape, (r.backbone, r.method, r.marked_source)), *_cells(r, shown, " ± ", "<b>{}</b>", "*")]
        for r in rows
    ]

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"

    return (
        f"<table><caption>{escape(caption)}</caption><thead>{line([*map(escape, head)], 'th')}</thead>"
        f"<tbody>{''.join(line(cells, 'td') for cells in body)}</tbody></table>"
    )


def to_latex(rows: Sequence[ComparedRow], caption: str) -> str:
    shown = shown_metrics(rows)
    escaped = [
        [_latex(t) for t in (r.backbone, r.method, r.marked_source)]
        + [f"${c}$" if c != "-" else c for c in _cells(r, shown, r"\pm ", r"\boldsymbol{{{}}}", "^*")]
        for r in rows
    ]
    head = ["Base model", "Method", "From", *(m.short for m in shown)]
    body = "\n".join(" & ".join(line) + r" \\" for line in escaped)
    return (
        f"% {caption}\n\\begin{{tabular}}{{lll{'c' * len(shown)}}}\n"
        f"\\toprule\n{' & '.join(head)} \\\\\n\\midrule\n"
        f"{body}\n\\bottomrule\n\\end{{tabular}}\n"
    )


def _latex(text: str) -> str:
    marks = {"_": r"\_", "†": r"$^\dagger$", "‡": r"$^\ddagger$"}
    return "".join(marks.get(character, character) for character in text)


def to_csv(rows: Sequence[ComparedRow]) -> str:
    keys = [metric.key for metric in shown_metrics(rows)]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    parts = ("", "_std", "_n", "_p")
    about = ["backbone", "method", "from", "data", "protocol", "chosen_on_test", "note"]
    writer.writerow(about + [key + part for key in keys for part in parts])
    for row in rows:
        cells: list[str] = []
        for key in keys:
            sample, p = row.figures.get(key), row.p.get(key)
            if sample is None:
                cells += [""] * len(parts)
                continue
            std = "" if math.isnan(sample.std) else f"{sample.std:.4f}"
            cells += [f"{sample.mean:.4f}", std, str(sample.n), "" if p is None else f"{p:.4g}"]
        words = [row.backbone, row.method, row.source, row.data, row.protocol, " ".join(row.chosen), row.note]
        writer.writerow([*words, *cells])
    return file.getvalue()
