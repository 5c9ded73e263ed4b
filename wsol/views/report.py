"""The report of one run or several: from their results to the one HTML file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wsol.class_names import display_names
from wsol.config_file import dump_config
from wsol.localization.maps import prepare
from wsol.records import Box
from wsol.scoring.protocols import HIT
from wsol.scoring.sweep import TOP5, FoundBoxes, own_overlap, passes
from wsol.views.gallery import GalleryImages, GalleryRun, MapView, pack_gallery
from wsol.views.page import Page, RunText
from wsol.views.report_figures import (
    METRICS,
    accuracy_charts,
    class_table,
    headline_cards,
    learning_charts,
    result_rows,
)
from wsol.views.report_masks import mask_section
from wsol.views.results import OUTCOMES, Results

NUM_THRESHOLDS = 100
LARGEST_FILE = 38_000_000
BYTES_OF_PHOTO = 12_000  # a thumbnail of 256 pixels with its texts, in base64
BYTES_OF_MAPS = 3_600  # the boxes, overlaps, maps and outcomes of one run, in base64

GALLERY_NOTE = (
    "Blue is the predicted box, red the true one. Move the threshold and the boxes and accuracies follow, "
    "looked up from what was computed. Click to enlarge; the arrow keys walk from image to image."
)


def build_page(results: Sequence[Results], num_images: int | None = None) -> Page:
    """Everything that the report shows. num_images: at most so many in the gallery; None for what fits."""
    first = results[0]
    thresholds = threshold_grid([r.threshold for r in results])
    start = int(np.argmin(np.abs(thresholds - first.threshold)))
    rows = gallery_rows(len(first.predictions), len(results), num_images)
    found = [r.find(thresholds) for r in results]
    live = [live_figures(r, true) for r, (true, _) in zip(results, found, strict=True)]
    runs = [
        gallery_run(r, true, top, rows, figures)
        for r, (true, top), figures in zip(results, found, live, strict=True)
    ]
    classes = display_names(first.predictions.classes)
    columns, class_rows = class_table(results)
    total = len(first.predictions)
    header = first.predictions.header
    protocol = first.protocol
    return Page(
        title="Localization report: " + ", ".join(r.name for r in results),
        facts=[
            f"data set {header.data}",
            f"{total:,} test images",
            f"{len(classes)} classes",
            f"protocol {protocol.name}: {protocol.summary}",
        ],
        runs=[run_text(r) for r in results],
        metric_labels=list(METRICS.values()),
        result_rows=result_rows(results),
        results_note=RESULTS_NOTE,
        gallery=pack_gallery(
            gallery_images(first, rows), runs, classes, OUTCOMES, thresholds.tolist(), start
        ),
        gallery_note=GALLERY_NOTE
        + (f" Shown are {len(rows):,} of {total:,} images, taken evenly." if len(rows) < total else ""),
        class_columns=columns,
        class_rows=class_rows,
        charts=[
            *learning_charts(results),
            *accuracy_charts(results, [true for true, _ in found], live, thresholds),
        ],
        masks=mask_section(results),
        warnings=[text for r in results for text in faults(r)],
    )


RESULTS_NOTE = (
    "Top-1 localization: the class is right and the box passes; GT-known: the box of the true class's map "
    "passes, whatever was predicted. The marked threshold is the one that the protocol itself reports. A "
    "fixed threshold looks at no box, a held-out one was chosen on training images, the oracle on these "
    "test images themselves: nobody can choose it without them. The centre box is a Gaussian in the "
    "middle of every image: it knows nothing, and a localizer should beat it."
)


def threshold_grid(exact: Sequence[float]) -> NDArray[np.float64]:
    """0, 0.01, ..., 0.99, the nearest of them replaced by each exact threshold that a run is reported at."""
    grid = np.arange(NUM_THRESHOLDS) / NUM_THRESHOLDS
    for value in exact:
        grid[np.argmin(np.abs(grid - value))] = value
    return np.sort(grid)


def gallery_rows(total: int, num_runs: int, limit: int | None) -> NDArray[np.int64]:
    """The rows that the gallery shows: all, or as many as keep the file small, taken evenly."""
    fitting = LARGEST_FILE // (BYTES_OF_PHOTO + num_runs * BYTES_OF_MAPS)
    wanted = min(total, fitting if limit is None else limit)
    return np.unique(np.linspace(0, total - 1, wanted).round().astype(np.int64)) if wanted else np.arange(0)


def live_figures(results: Results, found: FoundBoxes) -> dict[str, NDArray[np.float64]]:
    """Accuracies in percent at each threshold, over all images."""
    protocol, ranks = results.protocol, results.predictions.ranks[:, None]
    overlap = own_overlap(protocol, found.single, found.best)
    top = passes(overlap, HIT, protocol.strict_top)
    return {
        "Top-1 loc": 100 * (top & (ranks < 1)).mean(axis=0),
        "Top-5 loc": 100 * (top & (ranks < TOP5)).mean(axis=0),
        "GT-known": 100 * passes(overlap, HIT, protocol.strict_known).mean(axis=0),
    }


def gallery_images(results: Results, rows: NDArray[np.int64]) -> GalleryImages:
    predictions = results.predictions
    sizes = [tuple(max(side, 1) for side in predictions.size(row)) for row in rows.tolist()]
    names = [predictions.names[row] for row in rows.tolist()]
    return GalleryImages(
        names=names,
        paths=[results.paths[name] for name in names],
        labels=predictions.labels[rows].tolist(),
        sizes=[(w, h) for w, h in sizes],
        truth=[[Box(*box) for box in predictions.truths(row).tolist()] for row in rows.tolist()],
        regions=[predictions.view.region((w, h)) for w, h in sizes],
    )


def gallery_run(
    results: Results,
    true: FoundBoxes,
    top: FoundBoxes,
    rows: NDArray[np.int64],
    live: Mapping[str, NDArray[np.float64]],
) -> GalleryRun:
    predictions, probabilities = results.predictions, results.probabilities
    kinds = [results.kinds(row, true.boxes[row], true.single[row]) for row in rows.tolist()]
    return GalleryRun(
        name=results.name,
        true=_map_view(results, true, rows, 0, probabilities[rows, predictions.labels[rows]]),
        top=_map_view(results, top, rows, 1, probabilities[rows].max(axis=1)),
        predicted=results.predicted[rows],
        kinds=np.array(kinds, dtype=np.uint8).reshape(len(rows), -1),
        live=[(name, values.tolist()) for name, values in live.items()],
    )


def _map_view(
    results: Results, found: FoundBoxes, rows: NDArray[np.int64], which: int, score: NDArray[np.floating]
) -> MapView:
    maps = results.predictions.maps
    low = (maps.shape[3], maps.shape[2])
    heat = [
        prepare(maps[row, which].astype(np.float64), results.protocol.recipe, low) for row in rows.tolist()
    ]
    boxes = [results.in_pixels(row, found.boxes[row]) for row in rows.tolist()]
    return MapView(
        boxes=np.array(boxes).reshape(len(rows), len(found.thresholds), 4),
        overlap=found.single[rows],
        hit=passes(found.single[rows], HIT, results.protocol.strict_top),
        heat=np.array(heat).reshape(len(rows), low[1], low[0]),
        score=score,
    )


def run_text(results: Results) -> RunText:
    record, config = results.record, results.config
    origin = [
        ("Folder", str(results.run)),
        ("Checkpoint", str(record.get("checkpoint", ""))),
        ("Data", f"{record.get('data', '')}, digest {str(record.get('data_digest', ''))[:16]}"),
        *_json_facts(results, "weights.json", "Weights"),
        *_json_facts(results, "versions.json", "Made with"),
    ]
    return RunText(results.name, headline_cards(results), origin, dump_config(config))


def _json_facts(results: Results, file: str, title: str) -> list[tuple[str, str]]:
    """A small JSON file of the run folder in one line, where it is there."""
    try:
        record: Any = json.loads((results.run / file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    plain = {k: v for k, v in record.items() if isinstance(v, (str, int, float)) and v not in ("", None)}
    return [(title, ", ".join(f"{k} {v}" for k, v in plain.items()))] if plain else []


def faults(results: Results) -> list[str]:
    """What is to be known before the figures are believed."""
    return [
        f"{results.name}: {kind.replace('_', ' ')}: {len(names):,} ({', '.join(names[:3])}"
        f"{', ...' if len(names) > 3 else ''}); counted as misses or as their protocol says, none left out"
        for kind, names in results.predictions.faults().items()
        if names
    ]
