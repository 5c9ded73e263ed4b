"""The curves of a training run as one PNG: loss, accuracies, learning rate and mask deviation by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wsol.drawing.colours import PREDICTED, TRUTH
from wsol.errors import RunFolderError

# Title of a panel -> (column of metrics.csv, its name in the legend), scale of its values.
PANELS: dict[str, tuple[dict[str, str], float]] = {
    "loss": ({"loss": "training"}, 1),
    "classification (%)": ({"accuracy": "training", "val_top1_cls": "validation"}, 100),
    "localization on validation images (%)": ({"val_gt_known_loc": "GT-known", "val_top1_loc": "top-1"}, 100),
    "learning rate": ({"lr": "lr"}, 1),
    "deviation of the attention masks": ({"mask_std": "std"}, 1),
}
LINES = tuple(tuple(channel / 255 for channel in colour) for colour in (PREDICTED, TRUTH))


def draw_curves(history: Sequence[Mapping[str, float]], path: Path, title: str = "") -> None:
    """A panel for each kind of figure that the rows hold. history: one mapping for each epoch."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    panels = {
        name: (columns, scale)
        for name, (columns, scale) in PANELS.items()
        if any(column in row for row in history for column in columns)
    }
    figure = Figure(figsize=(4.2 * len(panels), 3.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    for place, (name, (columns, scale)) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), place)
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
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise RunFolderError(f"{path}: could not be written: {error.strerror}") from None
