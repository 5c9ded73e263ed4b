"""Scores for people: tables of fixed width, and scores.json for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wsol.runs import files

KIND_WORDS = {"fixed": "fixed", "held_out": "held out", "oracle": "oracle"}

FIGURES = {
    "top1_loc": "top-1 loc",
    "top5_loc": "top-5 loc",
    "gt_known_loc": "GT-known",
    "box_acc": "BoxAcc",
    "box_acc_v2": "BoxAccV2",
}


def text_table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows of cells as aligned text, the first row as the head; the `left` first columns to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = [
            c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(rows[0]), "  ".join("-" * w for w in widths), *map(line, rows[1:])])


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def threshold_table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """One line for each protocol and kind of threshold; '*' marks the protocol's own kind."""
    rows = [["protocol", "threshold", "at", *FIGURES.values()]]
    for name, result in results.items():
        for kind, at in result["at"].items():
            own = "*" if kind == result["threshold_kind"] else " "
            label = KIND_WORDS[kind] + own
            rows.append([name, label, f"{at['threshold']:g}", *(percent(at.get(f)) for f in FIGURES)])
    return text_table(rows, left=2)


def summary_table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """One line for each protocol: headline and maxima with 95 % intervals, the centre-box baseline."""
    rows = [
        ["protocol", "top-1 loc", "GT-known", "MaxBoxAcc", "MaxBoxAccV2", "PxAP", "centre V1", "centre V2"]
    ]
    for name, result in results.items():
        centre = result["centre_box"]
        rows.append(
            [
                name,
                *(
                    _with_interval(result, f)
                    for f in ("top1_loc", "gt_known_loc", "max_box_acc", "max_box_acc_v2")
                ),
                percent(result.get("pxap")),
                percent(centre["max_box_acc"]),
                percent(centre["max_box_acc_v2"]),
            ]
        )
    return text_table(rows)


def error_table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """How many images fall to each error kind, one line for each protocol."""
    kinds = list(next(iter(results.values()))["errors"])
    rows = [["protocol", *kinds]]
    rows += [[name, *(str(r["errors"][k]) for k in kinds)] for name, r in results.items()]
    return text_table(rows)


def _with_interval(result: Mapping[str, Any], figure: str) -> str:
    if figure not in result:
        return "-"
    if figure not in result["intervals"]:
        return percent(result[figure])
    low, high = result["intervals"][figure]
    return f"{result[figure]:.2f} [{low:.1f}, {high:.1f}]"


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Whole or not at all: a file that is there is complete."""
    files.write_json(path, record, parents=True)
