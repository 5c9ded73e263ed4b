"""Scores as rows of cells, for the terminal and for notebooks; labels come from the table of figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from wsol.registry import PROTOCOLS
from wsol.scoring.metrics import KINDS, headline_metrics, metrics

if TYPE_CHECKING:
    from wsol.scoring.scores import Scores

Rows = list[list[str]]

# Narrow: classification stands in a line of its own, and top-5 in the table of thresholds.
LEFT_OUT = ("top5_loc", "top1_cls", "top5_cls")


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def protocol_label(result: Scores) -> str:
    """The name of the protocol, and its version where the scores are not of the present one."""
    plain = result.protocol.partition("+")[0]
    if plain not in PROTOCOLS.entries():  # of a plugin that is not here
        return result.protocol
    is_present = result.version == PROTOCOLS.create(plain).version
    return result.protocol if is_present else f"{result.protocol}, version {result.version}"


def summary_rows(results: Mapping[str, Scores]) -> Rows:
    """One line for each protocol: headline and maxima with 95 % intervals, the centre-box baseline."""
    shown = [m for key, m in headline_metrics().items() if key not in LEFT_OUT]
    rows = [["protocol", *(m.short for m in shown), "centre V1", "centre V2"]]
    for result in results.values():
        centre = [percent(result.centre_box.get(key)) for key in ("max_box_acc", "max_box_acc_v2")]
        rows.append([protocol_label(result), *(with_interval(result, m.key) for m in shown), *centre])
    return rows


def class_rows(results: Mapping[str, Scores]) -> Rows:
    """One line for each protocol that measures classes alone: accuracy with its interval, and error."""
    shown = [metrics()[key] for key in ("top1_cls", "top5_cls")]
    rows = [["protocol", *(head for m in shown for head in (m.short, m.short.replace("cls", "error")))]]
    for result in results.values():
        pairs = ((with_interval(result, m.key), percent(100 - result[m.key])) for m in shown)
        rows.append([protocol_label(result), *(cell for pair in pairs for cell in pair)])
    return rows


def headline_rows(results: Mapping[str, Scores]) -> Rows:
    """The one table of a summary: of boxes where some were measured, else of classes."""
    localized = {name: result for name, result in results.items() if result.localizes}
    return summary_rows(localized) if localized else class_rows(results)


def threshold_rows(results: Mapping[str, Scores]) -> Rows:
    """One line for each protocol and kind of threshold; '*' marks the protocol's own kind."""
    shown = [m for m in metrics().values() if m.needs_threshold and m.per_image is not None]
    rows = [["protocol", "threshold", "at", *(m.short for m in shown)]]
    for result in results.values():
        for kind, at in result.at.items():
            label = KINDS[kind] + ("*" if kind == result.threshold_kind else " ")
            cells = (percent(at.figures.get(m.key)) for m in shown)
            rows.append([protocol_label(result), label, f"{at.threshold:g}", *cells])
    return rows


def error_rows(results: Mapping[str, Scores]) -> Rows:
    """How many images fall to each error kind, one line for each protocol."""
    kinds = list(next(iter(results.values())).errors)
    return [
        ["protocol", *kinds],
        *([protocol_label(r), *(str(r.errors[k]) for k in kinds)] for r in results.values()),
    ]


def with_interval(result: Scores, figure: str) -> str:
    """A figure with its 95 % interval: `61.20 [58.3, 64.0]`; "-" where the scores lack it."""
    if figure not in result:
        return "-"
    if figure not in result.intervals:
        return percent(result[figure])
    low, high = result.intervals[figure]
    return f"{result[figure]:.2f} [{low:.1f}, {high:.1f}]"
