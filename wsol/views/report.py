"""The report of one run or several: from their scores and predictions to the one HTML file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from wsol.class_names import display_names
from wsol.config_file import dump_config
from wsol.errors import ConfigError
from wsol.records import Box
from wsol.run import Run
from wsol.runs.files import read_regular
from wsol.scoring.error_kinds import OUTCOMES
from wsol.scoring.judged import Judged
from wsol.scoring.metrics import metrics
from wsol.scoring.protocols import Protocol
from wsol.views.gallery import GalleryImages, GallerySide, MapView, pack_gallery
from wsol.views.gallery_pictures import LARGE, THUMBNAIL, PictureSize, choose_size, data_uris, write_pictures
from wsol.views.page import Page, RunFacts
from wsol.views.report_classes import class_table, class_views, confusion_section, misnamed_images
from wsol.views.report_figures import (
    THRESHOLDS_NOTE,
    accuracy_charts,
    headline_cards,
    learning_charts,
    live_figures,
    result_rows,
    shown_metrics,
)
from wsol.views.report_masks import mask_section
from wsol.views.side_by_side import TOP, TRUE, Measured, measure

NUM_THRESHOLDS = 100
LARGEST_FILE = 38_000_000
BYTES_OF_PHOTO = 12_000  # a picture of the smallest size with its texts, in base64
BYTES_OF_TEXTS = 500  # name, sizes, truth boxes
BYTES_OF_MAPS = 3_600  # the boxes, overlaps, maps and outcomes of one run, in base64

GALLERY_NOTE = (
    "Blue is the predicted box, red the true one. The IoU is green where the image is a hit: {hit}. Move the "
    "threshold, and boxes and figures follow. Click to enlarge; the arrow keys go from image to image."
)
HIT = (
    "on the map of the predicted class where that class is right and the box passes (top-1), on the map of "
    "the true class where the box passes (GT-known)"
)
HIT_WITHOUT_CLASSES = "where the box passes (GT-known)"
ALL_CONTOURS_NOTE = (
    " This protocol counts the best of all contours: the box that is drawn is the one around the largest "
    "contour, the IoU that of the best contour."
)
SMALL_NOTE = (
    " To keep this file small, its pictures have no more than {side} pixels; with `--assets DIR`, "
    "`wsol report` writes larger ones beside it."
)


@dataclass(frozen=True)
class Assets:
    """A folder for large pictures, and its address as the page sees it."""

    folder: Path
    address: str

    @classmethod
    def beside(cls, page: Path, folder: Path) -> Assets:
        """The folder as a page in a file sees it.

        >>> Assets.beside(Path("out/report.html"), Path("out/large pictures")).address
        'large%20pictures'
        """
        try:
            way = Path(os.path.relpath(folder, page.parent)).as_posix()
        except ValueError:  # another drive of Windows
            return cls(folder, folder.resolve().as_uri())
        return cls(folder, quote(way))

    def write(self, paths: Sequence[Path]) -> list[str]:
        """Large pictures of these photos; returns their addresses."""
        return [f"{self.address}/{quote(name)}" for name in write_pictures(paths, self.folder)]


def build_page(
    runs: Sequence[Run],
    protocol: Protocol | None = None,
    num_images: int | None = None,
    assets: Assets | None = None,
) -> Page:
    """Everything that the report shows. num_images: the most in the gallery; None for what fits.

    assets: where large pictures are written; None for pictures inside the page alone.
    """
    if num_images is not None and num_images < 0:
        raise ConfigError(f"images {num_images}: not less than 0")
    protocol = protocol or runs[0].protocol()
    measured = measure(runs, protocol)
    first, total = measured[0], len(measured[0].predictions)
    reported = [t for m in measured for t in (m.scores.threshold, m.scores.default_threshold())]
    thresholds = threshold_grid(reported)
    rows = gallery_rows(total, len(measured), num_images)
    judged = [m.judge(thresholds) for m in measured]
    live = [live_figures(true) for true, _ in judged]
    sides = [gallery_side(m, *both, rows, own) for m, both, own in zip(measured, judged, live, strict=True)]
    misnamed = misnamed_images(measured, [true for true, _ in judged])
    paths = first.image_paths(rows.tolist())
    picture = THUMBNAIL if assets else picture_size(paths, len(measured))
    images = gallery_images(first, rows, data_uris(paths, picture), assets.write(paths) if assets else [])
    classes = display_names(first.predictions.classes)
    columns, class_rows = class_table(measured)
    with_classes = any(m.predictions.ranks is not None for m in measured)
    several_contours = protocol.extraction.single_box != protocol.extraction.box
    return Page(
        title="Localization report: " + ", ".join(m.name for m in measured),
        facts=[
            f"data set {first.predictions.header.data}",
            f"{total:,} test images",
            f"{len(classes)} classes",
            f"protocol {protocol.name}: {protocol.summary}",
        ],
        runs=[run_facts(m) for m in measured],
        figures=[(metric.short, metric.meaning) for metric in shown_metrics(measured)],
        result_rows=result_rows(measured),
        results_note=THRESHOLDS_NOTE,
        gallery={
            **pack_gallery(
                images,
                sides,
                classes,
                OUTCOMES,
                thresholds.tolist(),
                start=int(np.flatnonzero(thresholds == first.scores.threshold)[0]),
            ),
            "class_views": class_views(measured, [true for true, _ in judged], misnamed),
        },
        with_classes=with_classes,
        gallery_note=GALLERY_NOTE.format(hit=HIT if with_classes else HIT_WITHOUT_CLASSES)
        + (ALL_CONTOURS_NOTE if several_contours else "")
        + (f" Shown are {len(rows):,} of {total:,} images, taken evenly." if len(rows) < total else "")
        + (SMALL_NOTE.format(side=picture.side) if picture.side < LARGE and not assets else ""),
        class_columns=columns,
        class_rows=class_rows,
        confusions=confusion_section(measured, misnamed, rows),
        charts=[
            *learning_charts(measured),
            *accuracy_charts(measured, [true for true, _ in judged], live),
        ],
        masks=mask_section(measured),
        assets=assets.folder.name if assets else "",
        warnings=[text for m in measured for text in faults(m)],
    )


def threshold_grid(exact: Sequence[float]) -> NDArray[np.float64]:
    """0, 0.01, ..., 0.99, with each exact threshold in the place of the nearest one that is still free."""
    grid = np.arange(NUM_THRESHOLDS) / NUM_THRESHOLDS
    taken = np.zeros(NUM_THRESHOLDS, dtype=bool)
    for value in dict.fromkeys(exact):
        place = int(np.argmin(np.where(taken, np.inf, np.abs(grid - value))))
        grid[place], taken[place] = value, True
    return np.sort(grid)


def gallery_rows(total: int, num_runs: int, limit: int | None) -> NDArray[np.int64]:
    """The rows that the gallery shows: all, or as many as keep the file small, taken evenly."""
    fitting = LARGEST_FILE // (BYTES_OF_PHOTO + num_runs * BYTES_OF_MAPS)
    wanted = min(total, fitting if limit is None else limit)
    return np.unique(np.linspace(0, total - 1, wanted).round().astype(np.int64)) if wanted else np.arange(0)


def picture_size(paths: Sequence[Path], num_runs: int) -> PictureSize:
    """As large as the file's limit allows, beside what the runs need of it."""
    others = len(paths) * (BYTES_OF_TEXTS + num_runs * BYTES_OF_MAPS)
    return choose_size(paths, LARGEST_FILE - others)


def gallery_images(
    measured: Measured, rows: NDArray[np.int64], pictures: Sequence[str], large: Sequence[str]
) -> GalleryImages:
    predictions, listed = measured.predictions, rows.tolist()
    sizes = [predictions.size(row) for row in listed]
    drawn = [(max(width, 1), max(height, 1)) for width, height in sizes]  # an unreadable image has no size
    return GalleryImages(
        names=[predictions.names[row] for row in listed],
        pictures=pictures,
        labels=predictions.labels[rows].tolist(),
        sizes=drawn,
        truth=[[Box(*box) for box in predictions.truths(row).tolist()] for row in listed],
        regions=[predictions.view.region(size) for size in drawn],
        large=large,
    )


def gallery_side(
    measured: Measured,
    true: Judged,
    top: Judged,
    rows: NDArray[np.int64],
    live: Mapping[str, NDArray[np.float64]],
) -> GallerySide:
    """What one run gives to the gallery. live: figures by key, at each threshold."""
    predictions = measured.predictions
    probabilities = predictions.probabilities[rows]
    best = probabilities.max(axis=1)
    of_true = best  # of the one map, where no classes are known
    if predictions.header.knows_classes:
        of_true = np.take_along_axis(probabilities, predictions.labels[rows, None], axis=1)[:, 0]
    known, steps = metrics(), len(true.found.thresholds)
    return GallerySide(
        name=measured.name,
        true=_map_view(measured, true, TRUE, rows, true.known(), of_true),
        top=_map_view(measured, top, TOP, rows, top.hits, best),
        predicted=predictions.predicted[rows],
        kinds=np.array([true.kinds(row) for row in rows.tolist()], dtype=np.uint8).reshape(len(rows), steps),
        live=[(known[key].short, values.tolist()) for key, values in live.items()],
        knows_classes=predictions.header.knows_classes,
    )


def _map_view(
    measured: Measured,
    judged: Judged,
    which: int,
    rows: NDArray[np.int64],
    hit: NDArray[np.bool_],
    score: NDArray[np.floating],
) -> MapView:
    listed = rows.tolist()
    boxes = [measured.boxes_in_pixels(judged, row) for row in listed]
    heat = [measured.heat(row, which) for row in listed]
    return MapView(
        boxes=np.array(boxes).reshape(len(rows), len(judged.found.thresholds), 4),
        overlap=judged.overlap[rows],
        hit=hit[rows],
        heat=np.array(heat).reshape(len(rows), *measured.predictions.maps.shape[2:]),
        score=score,
    )


def run_facts(measured: Measured) -> RunFacts:
    run, scores = measured.run, measured.run.scores
    origin = [
        ("Folder", str(run.path)),
        ("Checkpoint", scores.checkpoint),
        ("Data", f"{scores.data}, digest {scores.data_digest[:16]}"),
        *_json_facts(run.folder.weights, "Weights"),
        *_json_facts(run.folder.versions, "Made with"),
    ]
    return RunFacts(measured.name, headline_cards(measured), origin, dump_config(run.config))


def _json_facts(path: Path, title: str) -> list[tuple[str, str]]:
    """A small JSON file of the run folder in one line, if it exists."""
    try:
        record = json.loads(read_regular(path))
        plain = {k: v for k, v in record.items() if isinstance(v, (str, int, float)) and v != ""}
    except (OSError, ValueError, AttributeError):
        return []
    return [(title, ", ".join(f"{k} {v}" for k, v in plain.items()))] if plain else []


def faults(measured: Measured) -> list[str]:
    """What a reader must know about the figures."""
    return [
        f"{measured.name}: {kind.replace('_', ' ')}: {len(names):,} ({', '.join(names[:3])}"
        f"{', ...' if len(names) > 3 else ''}); counted as misses or as the protocol says, none left out"
        for kind, names in measured.predictions.faults().items()
        if names
    ]
