"""What the report says of the attention masks, from the predictions of the test images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wsol.scoring.mask_effect import measure_masks
from wsol.scoring.nll import DEFINITIONS, analyze_nll
from wsol.views.analysis import find_scalars
from wsol.views.charts import Chart, Histogram, LineChart, Series
from wsol.views.page import MaskSection
from wsol.views.side_by_side import Measured

BINS = 40
COLUMNS = ("Run", "Mean", "Deviation", "across channels", "across images", "AUC", *DEFINITIONS, "ln C")
NOTE = (
    "Values of the last attention mask over the class channels, for all test images. The deviation across "
    "channels says how unequally one image's channels are weighted; the one across images says how much the "
    "weights follow the image. Where both are 0 the attention is a constant factor. The AUC is the share of "
    "the other classes whose mask is below that of the true class: 0.5 is chance. The negative "
    "log-likelihoods say how well the scores and the mask show the true class; a guess has ln C."
)


def mask_section(measured: Sequence[Measured]) -> MaskSection | None:
    """The masks of the runs that have an attention; None where no run has one."""
    masks = {tone: m for tone, r in enumerate(measured) if (m := _finite_masks(r)) is not None}
    if not masks:
        return None
    words, rows = [], []
    for tone, m in masks.items():
        name, predictions = measured[tone].name, measured[tone].predictions
        effect = measure_masks(predictions)
        if effect is not None:
            words.append((name, [_sentence(effect.verdict), _sentence(effect.consequence)]))
        spread = (m.mean(), m.std(), m.std(axis=1).mean(), m.std(axis=0).mean())
        nll = analyze_nll(predictions).values()
        likelihoods = (f"{v:.3f}" if v is not None else "" for v in nll)
        uniform = f"{np.log(len(predictions.classes)):.3f}"
        auc = "" if effect is None else f"{effect.auc:.3f}"
        rows.append([name, *(f"{v:.4f}" for v in spread), auc, *likelihoods, uniform])
    columns = [c.replace("_", " ").replace("nll", "NLL") for c in COLUMNS]
    charts = [*_mask_charts(measured, masks), *_learned_charts(measured)]
    return MaskSection(words, charts, columns, rows, NOTE)


def _mask_charts(measured: Sequence[Measured], masks: Mapping[int, NDArray[np.float64]]) -> list[Chart]:
    """Values over all channels, those of the true class alone, and the mean of each channel."""
    low = min(float(m.min()) for m in masks.values())
    high = max(float(m.max()) for m in masks.values())
    edges = np.linspace(low, high if high > low else low + 1e-6, BINS + 1)
    every, own, means = [], [], []
    for tone, m in masks.items():
        name, labels = measured[tone].name, _labels_of_finite(measured[tone])
        every.append(Series(name, edges[:-1].tolist(), np.histogram(m, edges)[0].tolist(), tone))
        of_true = np.histogram(m[np.arange(len(m)), labels], edges)[0].tolist()
        own.append(Series(name, edges[:-1].tolist(), of_true, tone))
        means.append(Series(name, list(range(m.shape[1])), m.mean(axis=0).tolist(), tone))
    return [
        Histogram("mask_values", "Mask values, all channels", edges.tolist(), every, "mask value"),
        Histogram("mask_true_class", "Mask values of the true class", edges.tolist(), own, "mask value"),
        LineChart("mask_means", "Mean mask of each channel", means, "channel", "", whole=True),
    ]


def _learned_charts(measured: Sequence[Measured]) -> list[Chart]:
    """What the attentions learned, number by number, over the epochs."""
    found = [find_scalars(one.run.history) for one in measured]
    names = list(dict.fromkeys(name for own in found for name in own))
    charts = []
    for name in names:
        lines = [
            Series(one.name, [p[0] for p in own[name]], [p[1] for p in own[name]], tone)
            for tone, (one, own) in enumerate(zip(measured, found, strict=True))
            if name in own
        ]
        file = f"attention_{name.replace('.', '_')}"
        charts.append(LineChart(file, f"Attention: {name}", lines, "epoch", "", whole=True))
    return [chart for chart in charts if chart.kept()]


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _finite(measured: Measured) -> NDArray[np.bool_]:
    """(N,) the images whose mask has numbers alone."""
    rows: NDArray[np.bool_] = np.isfinite(np.asarray(measured.predictions.masks)).all(axis=1)
    return rows


def _finite_masks(measured: Measured) -> NDArray[np.float64] | None:
    """(n, C) masks of the images where all are numbers; None without an attention, whose mask would be 1."""
    if measured.predictions.masks is None:
        return None
    masks = np.asarray(measured.predictions.masks, dtype=np.float64)[_finite(measured)]
    return masks if masks.size and not (masks == 1).all() else None


def _labels_of_finite(measured: Measured) -> NDArray[np.int64]:
    """(n,) the labels of the same images."""
    return np.asarray(measured.predictions.labels, dtype=np.int64)[_finite(measured)]
