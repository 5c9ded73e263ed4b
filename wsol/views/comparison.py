"""A comparison as Markdown, LaTeX, CSV or a picture."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from wsol.scoring.compare import COLUMNS, Row
from wsol.scoring.significance import Sample

OWN, OTHERS = "#1b6ca8", "#8a8a8a"


def _columns(rows: Sequence[Row]) -> list[str]:
    return [name for name in COLUMNS if any(name in row.figures for row in rows)]


def _value(sample: Sample, plus_minus: str) -> str:
    return (
        f"{sample.mean:.2f}" if math.isnan(sample.std) else f"{sample.mean:.2f}{plus_minus}{sample.std:.2f}"
    )


def _cells(row: Row, names: Sequence[str], plus_minus: str, bold: str, star: str, none: str) -> list[str]:
    cells = []
    for name in names:
        sample = row.figures.get(name)
        if sample is None:
            cells.append(none)
            continue
        text = _value(sample, plus_minus)
        text = bold.format(text) if name in row.best else text
        cells.append(text + (star if row.significant(name) else ""))
    return cells


def to_markdown(rows: Sequence[Row], caption: str) -> str:
    names = _columns(rows)
    head = ["backbone", "method", "from", *(COLUMNS[n] for n in names)]
    lines = [head, ["---"] * 3 + ["---:"] * len(names)]
    lines += [[r.backbone, r.method, r.source, *_cells(r, names, " ± ", "**{}**", "\\*", "-")] for r in rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{table}\n\n{caption.replace('*', chr(92) + '*')}\n"


def to_latex(rows: Sequence[Row], caption: str) -> str:
    names = _columns(rows)
    escaped = [
        [t.replace("_", r"\_") for t in (r.backbone, r.method, r.source)]
        + [f"${c}$" if c != "-" else c for c in _cells(r, names, r"\pm ", r"\boldsymbol{{{}}}", "^*", "-")]
        for r in rows
    ]
    head = ["Base model", "Method", "From", *(COLUMNS[n] for n in names)]
    body = "\n".join(" & ".join(line) + r" \\" for line in escaped)
    return (
        f"% {caption}\n\\begin{{tabular}}{{lll{'c' * len(names)}}}\n"
        f"\\toprule\n{' & '.join(head)} \\\\\n\\midrule\n"
        f"{body}\n\\bottomrule\n\\end{{tabular}}\n"
    )


def to_csv(rows: Sequence[Row], _caption: str) -> str:
    names = _columns(rows)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    parts = ("", "_std", "_n", "_p")
    about = ["backbone", "method", "from", "data", "protocol"]
    writer.writerow(about + [n + part for n in names for part in parts])
    for row in rows:
        cells: list[str] = []
        for name in names:
            sample, p = row.figures.get(name), row.p.get(name)
            if sample is None:
                cells += [""] * len(parts)
                continue
            std = "" if math.isnan(sample.std) else f"{sample.std:.4f}"
            cells += [f"{sample.mean:.4f}", std, str(sample.n), "" if p is None else f"{p:.4g}"]
        writer.writerow([row.backbone, row.method, row.source, row.data, row.protocol, *cells])
    return file.getvalue()


def draw(rows: Sequence[Row], path: Path, caption: str) -> None:
    """One panel for each figure, a dot with its deviation for each row; best filled, significant starred."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    names = _columns(rows)
    height = 1.2 + 0.32 * len(rows)
    figure = Figure(figsize=(2.6 + 2.2 * len(names), height), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    labels = [f"{r.backbone}  {r.method}, {r.source}" for r in rows]
    for panel, name in zip(panels, names, strict=True):
        for y, row in enumerate(rows):
            sample = row.figures.get(name)
            if sample is None:
                continue
            panel.errorbar(
                sample.mean,
                y,
                xerr=0 if math.isnan(sample.std) else sample.std,
                fmt="o",
                color=OTHERS if row.published else OWN,
                markerfacecolor=None if name in row.best else "white",
                markersize=6,
                capsize=2,
            )
            if row.significant(name):
                panel.annotate("*", (sample.mean, y), xytext=(4, 2), textcoords="offset points")
        panel.set_title(COLUMNS[name], fontsize=10)
        panel.grid(axis="x", color="#e4e4e4")
        panel.set_axisbelow(True)
    panels[0].set_yticks(range(len(rows)), labels, fontsize=8)
    panels[0].set_ylim(len(rows) - 0.5, -0.5)
    marks = [
        Line2D([], [], color=OWN, marker="o", linestyle="", label="ours, filled where best"),
        Line2D([], [], color=OTHERS, marker="o", linestyle="", label="published, likewise"),
    ]
    figure.legend(handles=marks, loc="outside upper right", ncols=2, fontsize=8, frameon=False)
    width = int(16 * figure.get_figwidth())
    figure.supxlabel("\n".join(textwrap.wrap(caption, width)), fontsize=8)
    figure.savefig(path, dpi=150)


TEXT_FORMATS: dict[str, Callable[[Sequence[Row], str], str]] = {
    "md": to_markdown,
    "latex": to_latex,
    "csv": to_csv,
}
