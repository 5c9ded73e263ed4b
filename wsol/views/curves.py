"""The curves of a training run as one figure: loss, accuracies, learning rate and mask deviation by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wsol.scoring.metrics import metrics
from wsol.views.figure_style import (
    COLUMN,
    PAGE,
    legend_below,
    line_look,
    new_figure,
    paper_style,
    write_figure,
)

IN_A_ROW = 3  # panels
PANEL_HEIGHT = 1.9  # inches


def panels() -> dict[str, tuple[dict[str, str], float]]:
    """By the title of a panel: the columns of metrics.csv with their names in the legend, and the factor of
    their values."""
    known = metrics()
    validated = {f"val_{key}": known[key].short for key in ("gt_known_loc", "top1_loc")}
    return {
        "loss": ({"loss": "training"}, 1),
        f"{known['top1_cls'].long} (%)": ({"accuracy": "training", "val_top1_cls": "validation"}, 100),
        "localization, validation (%)": (validated, 100),
        "learning rate": ({"lr": "lr"}, 1),
        "deviation of the attention masks": ({"mask_std": "std"}, 1),
    }


def draw_curves(history: Sequence[Mapping[str, float]], path: Path, title: str = "") -> None:
    """A panel for each kind of figure that the rows hold. history: one mapping for each epoch.

    The name of the file ends with .png, .pdf or .svg. Nothing is drawn where the rows hold none of the
    figures, as those of a head that is fitted in one pass.
    """
    from matplotlib.ticker import MaxNLocator

    shown = {
        name: (columns, scale)
        for name, (columns, scale) in panels().items()
        if any(column in row for row in history for column in columns)
    }
    if not shown:
        return
    across = min(len(shown), IN_A_ROW)
    down = -(-len(shown) // across)
    with paper_style():
        figure = new_figure(COLUMN if across == 1 else PAGE, PANEL_HEIGHT * down + 0.3, title)
        for place, (name, (columns, scale)) in enumerate(shown.items(), start=1):
            axes = figure.add_subplot(down, across, place)
            for number, (column, label) in enumerate(columns.items()):
                points = [(row["epoch"], scale * row[column]) for row in history if column in row]
                if points:
                    dots: dict[str, Any] = {"marker": "o" if len(points) < 30 else "", "markersize": 2}
                    axes.plot(*zip(*points, strict=True), label=label, **line_look(number), **dots)
            axes.set_title(name)
            axes.set_xlabel("epoch")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            if len(columns) > 1:
                legend_below(axes)
        write_figure(figure, path)
