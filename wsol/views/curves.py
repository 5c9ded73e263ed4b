"""The curves of a training run as one PNG: loss, accuracies, learning rate and mask deviation by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wsol.drawing.colours import PREDICTED, TRUTH
from wsol.runs.files import replacing
from wsol.scoring.metrics import metrics
from wsol.views.figure_style import without_math

LINES = tuple(tuple(channel / 255 for channel in colour) for colour in (PREDICTED, TRUTH))


def panels() -> dict[str, tuple[dict[str, str], float]]:
    """By the title of a panel: the columns of metrics.csv with their names in the legend, and the factor of
    their values."""
    known = metrics()
    validated = {f"val_{key}": known[key].short for key in ("gt_known_loc", "top1_loc")}
    return {
        "loss": ({"loss": "training"}, 1),
        f"{known['top1_cls'].long} (%)": ({"accuracy": "training", "val_top1_cls": "validation"}, 100),
        "localization on validation images (%)": (validated, 100),
        "learning rate": ({"lr": "lr"}, 1),
        "deviation of the attention masks": ({"mask_std": "std"}, 1),
    }


def draw_curves(history: Sequence[Mapping[str, float]], path: Path, title: str = "") -> None:
    """A panel for each kind of figure that the rows hold. history: one mapping for each epoch.

    Nothing is drawn where the rows hold none of them, as those of a head that is fitted in one pass.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    shown = {
        name: (columns, scale)
        for name, (columns, scale) in panels().items()
        if any(column in row for row in history for column in columns)
    }
    if not shown:
        return
    figure = Figure(figsize=(4.2 * len(shown), 3.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(without_math(title))
    for place, (name, (columns, scale)) in enumerate(shown.items(), start=1):
        axes = figure.add_subplot(1, len(shown), place)
        for (column, label), colour in zip(columns.items(), LINES, strict=False):
            points = [(row["epoch"], scale * row[column]) for row in history if column in row]
            if points:
                marker = "o" if len(points) < 30 else ""
                axes.plot(*zip(*points, strict=True), label=label, color=colour, marker=marker, markersize=3)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        if len(columns) > 1:
            axes.legend(frameon=False, fontsize=9)
    with replacing(path) as draft:
        figure.savefig(draft, format="png")
