"""What the report says of the attention masks, from the predictions of the test images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wsol.scoring.nll import DEFINITIONS, analyze_nll
from wsol.views.charts import Series, histogram, line_chart
from wsol.views.page import MaskSection
from wsol.views.side_by_side import Measured

BINS = 40
COLUMNS = ("Run", "Mean", "Deviation", "across channels", "across images", *DEFINITIONS, "ln C")
NOTE = (
    "Values of the last attention mask over the class channels, for all test images. The deviation across "
    "channels says how unequally one image's channels are weighted; the one across images says how much the "
    "weights follow the image. Where both are 0 the attention is a constant factor. The negative "
    "log-likelihoods say how well the scores and the mask show the true class; a guess has ln C."
)


def mask_section(measured: Sequence[Measured]) -> MaskSection | None:
    """The masks of the runs that have an attention; None where no run has one."""
    masks = {tone: m for tone, r in enumerate(measured) if (m := _finite_masks(r)) is not None}
    if not masks:
        return None
    low = min(float(m.min()) for m in masks.values())
    high = max(float(m.max()) for m in masks.values())
    edges = np.linspace(low, high if high > low else low + 1e-6, BINS + 1)
    counts, means, rows = [], [], []
    for tone, m in masks.items():
        name, predictions = measured[tone].name, measured[tone].predictions
        counts.append(Series(name, edges[:-1].tolist(), np.histogram(m, edges)[0].tolist(), tone))
        means.append(Series(name, list(range(m.shape[1])), m.mean(axis=0).tolist(), tone))
        spread = (m.mean(), m.std(), m.std(axis=1).mean(), m.std(axis=0).mean())
        nll = analyze_nll(predictions).values()
        likelihoods = (f"{v:.3f}" if v is not None else "" for v in nll)
        uniform = f"{np.log(len(predictions.classes)):.3f}"
        rows.append([name, *(f"{v:.4f}" for v in spread), *likelihoods, uniform])
    charts = [
        histogram("Mask values", edges.tolist(), counts, "mask value"),
        line_chart("Mean mask of each channel", means, "channel", "mask", whole=True),
    ]
    columns = [c.replace("_", " ").replace("nll", "NLL") for c in COLUMNS]
    return MaskSection(charts, columns, rows, NOTE)


def _finite_masks(measured: Measured) -> NDArray[np.float64] | None:
    """(n, C) masks of the images where all are numbers; None without an attention, whose mask would be 1."""
    if measured.predictions.masks is None:
        return None
    masks = np.asarray(measured.predictions.masks, dtype=np.float64)
    masks = masks[np.isfinite(masks).all(axis=1)]
    return masks if masks.size and not (masks == 1).all() else None
