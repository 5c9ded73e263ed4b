"""Evaluated run folders without any training: maps drawn by a generator, scored by every protocol.

The images are small files on the disk. Among them are wrongly named ones, one that could not be read, one
with a constant map, one without truth boxes, and some whose IoU is exactly 0.5 under one protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from wsol.config_file import config_from_dict, dump_config
from wsol.data.record import DataRecord
from wsol.data.transforms import View, ViewKind
from wsol.localization.cutter import MapCutter
from wsol.localization.predictions import ClassesBy, Header, Predictions, PredictionsWriter
from wsol.records import Box, DataIndex, Sample
from wsol.run import Run
from wsol.runs.files import new_draft_folder, write_json, write_text
from wsol.runs.folder import RunFolder
from wsol.scoring.protocols import VIEWS, Protocol, find_protocols
from wsol.scoring.score import HeldOut, score_maps
from wsol.scoring.scores import Evaluation, Scores

SIDE = 48  # of the network's square and of every image, so that no box is rounded on its way
CLASSES = ("001.Blue_Jay", "002.Crow", "003.Grey_Gull")
UNREADABLE, CONSTANT, WITHOUT_BOXES = 3, 4, 5  # rows with something special
EXACT = (6, 7, 8)  # rows whose IoU is 0.5, neither more nor less, under `tscam`
HELD_OUT = 0.31
CHECKPOINT = ("best.ckpt, epoch 1", "0" * 64)


def make_evaluated_run(
    path: Path, boxes: int = 1, num: int = 12, seed: int = 0, attention: str = "se"
) -> Path:
    """A run folder with config, data record, predictions of both views and ten crops, and all scores.

    boxes: truth boxes of each image.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(CLASSES), num).tolist()
    maps = np.stack([_random_map(rng) for _ in range(2 * num)]).reshape(num, 2, 12, 12)
    scores = rng.normal(size=(num, len(CLASSES))).astype(np.float32)
    scores[: num * 2 // 3, :] += 4 * np.eye(len(CLASSES), dtype=np.float32)[labels[: num * 2 // 3]]
    other = np.random.default_rng(1000 + seed)  # for what ten crops say, and the map of their best class
    maps = np.concatenate([maps, np.stack([_random_map(other) for _ in range(num)])[:, None]], axis=1)
    crops = other.uniform(size=scores.shape).astype(np.float32)
    crops[num // 3 :, :] += np.eye(len(CLASSES), dtype=np.float32)[labels[num // 3 :]]
    crops /= crops.sum(axis=1, keepdims=True)
    maps[CONSTANT] = 0.5
    best, voted = scores.argmax(axis=1), crops.argmax(axis=1)
    maps[best == labels, 1] = maps[best == labels, 0]
    maps[best == voted, 2] = maps[best == voted, 1]
    maps[voted == labels, 2] = maps[voted == labels, 0]
    masks = rng.uniform(size=(num, len(CLASSES))).astype(np.float32)
    truths = [_truths(rng, maps[row, 0], boxes, row in EXACT) for row in range(num)]
    truths[WITHOUT_BOXES] = []
    index = _write_images(path.parent / f"{path.name}-images", rng, labels, truths)
    folder = RunFolder(path)
    config = {
        "data": {"name": "folder", "root": str(index.root), "image_size": SIDE},
        "model": {"backbone": "tiny", "weights": "none", "attention": attention},
        "train": {"seed": seed},
    }
    write_text(folder.config, dump_config(config_from_dict(config)), parents=True)
    write_json(folder.data, DataRecord.of(index, index.digest()).to_json())
    results: dict[str, Scores] = {}
    _write_ten_crops(folder, index, crops)
    for view in VIEWS:
        _write_predictions(folder, index, view, scores, maps, masks)
        for classes_by in get_args(ClassesBy):
            predictions = Run(path).predictions("test", view, classes_by)
            own = [p for p in find_protocols("all") if (p.view, p.classes_by) == (view, classes_by)]
            results |= score_maps(predictions, own, {p.name: HeldOut(HELD_OUT, 5, 5) for p in own})
    evaluation = Evaluation(
        {p.name: results[p.name] for p in find_protocols("all")},
        num,
        origin=str(path),
        checkpoint=CHECKPOINT[0],
        checkpoint_digest=CHECKPOINT[1],
        data=index.name,
        data_digest=index.digest(),
        test_digest=index.test_digest(),
    )
    write_json(folder.scores, evaluation.to_json())
    return path


def _random_map(rng: np.random.Generator) -> NDArray[np.float32]:
    """(12, 12) with two or three bumps, so that there are several contours."""
    y, x = np.mgrid[:12, :12]
    total = np.zeros((12, 12))
    for _ in range(int(rng.integers(2, 4))):
        (cy, cx), width = rng.uniform(1, 11, 2), rng.uniform(0.8, 2)
        total += rng.uniform(0.5, 1) * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / (2 * width**2))
    return total.astype(np.float32)


def _truths(rng: np.random.Generator, raw: NDArray[np.float32], num: int, exact: bool) -> list[Box]:
    """Boxes near one of the contours of the map, or one that shares exactly half with the single box."""
    protocol = find_protocols("tscam")[0]
    found = MapCutter(raw, (SIDE, SIDE), View("resize", SIDE)).find(protocol.extraction, np.array([HELD_OUT]))
    x0, y0, x1, y1 = found.single[0].tolist()
    if exact:  # the sides are counted as x1 - x0 + 1
        width, height = x1 - x0 + 1, y1 - y0 + 1
        if width % 2 == 0:
            return [Box(x0, y0, x0 + width // 2 - 1, y1)]
        if height % 2 == 0:
            return [Box(x0, y0, x1, y0 + height // 2 - 1)]
    assert found.contours is not None
    contours = found.contours.boxes if len(found.contours.boxes) else found.single
    boxes = []
    for _ in range(num):
        near = contours[int(rng.integers(len(contours)))]
        low, high = near[:2] + rng.integers(-4, 5, 2), near[2:] + rng.integers(-4, 5, 2)
        low = np.clip(low, 0, SIDE - 8)
        high = np.clip(np.maximum(high, low + 4), 0, SIDE)
        boxes.append(Box(*map(float, (*low, *high))))
    return boxes


def _write_images(
    root: Path, rng: np.random.Generator, labels: Sequence[int], truths: Sequence[Sequence[Box]]
) -> DataIndex:
    samples = []
    for row, (label, boxes) in enumerate(zip(labels, truths, strict=True)):
        name = f"{CLASSES[label]}/{row}.png"
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if row == UNREADABLE:
            path.write_text("no picture")
        else:
            Image.fromarray(rng.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)).save(path)
        samples.append(Sample(name, path, label, tuple(boxes), "test", (SIDE, SIDE)))
    return DataIndex("made", root, tuple(samples), CLASSES)


def _write_predictions(
    folder: RunFolder,
    index: DataIndex,
    view: ViewKind,
    scores: NDArray[np.float32],
    maps: NDArray[np.float32],
    masks: NDArray[np.float32],
) -> Predictions:
    header = Header.of(index, index.samples, "test", View(view, SIDE), *CHECKPOINT)
    path = folder.predictions_of("test", view)
    writer = PredictionsWriter(path, new_draft_folder(path, parents=True), header)
    rows = np.arange(len(index.samples))
    sizes = [None if row == UNREADABLE else s.size for row, s in enumerate(index.samples)]
    writer.start([s.label for s in index.samples], sizes)
    writer.write(rows, scores, maps, rows == UNREADABLE, masks)
    return writer.finish()


def _write_ten_crops(folder: RunFolder, index: DataIndex, probabilities: NDArray[np.float32]) -> None:
    header = Header.of(index, index.samples, "test", View("crop", SIDE), *CHECKPOINT, "ten crops")
    path = folder.ten_crops_of("test")
    writer = PredictionsWriter(path, new_draft_folder(path, parents=True), header)
    rows = np.arange(len(index.samples))
    writer.start([s.label for s in index.samples], [s.size for s in index.samples])
    writer.write(rows, probabilities, None, rows == UNREADABLE)
    writer.finish()


class ByHand(NamedTuple):
    """What a protocol says of one image: the IoU that counts, GT-known hit, top-1 hit."""

    overlap: float
    known: bool
    top: bool


def judged_by_hand(
    protocol: Protocol, predictions: Predictions, row: int, threshold: float, which: int = 0
) -> ByHand:
    """One image at one threshold, by the rules as docs/protocols.md states them.

    Written without `Judge`, so that tests have something to hold it against. which: the map, 0 or 1.
    """
    if predictions.unreadable(row):
        return ByHand(0.0, False, False)
    size, extraction = predictions.size(row), protocol.extraction
    raw = predictions.maps[row, predictions.best_map if which else 0]
    found = MapCutter(raw, size, predictions.view).find(extraction, np.array([threshold]))
    boxes = found.single.astype(float)
    if extraction.box == "all contours" and found.contours is not None and not found.empty[0]:
        boxes = found.contours.boxes.astype(float)
    best = 0.0
    for truth in _in_frame(protocol, predictions, row):
        for box in boxes:
            best = max(best, _iou(box, truth, 1 if protocol.iou == "pixel" else 0))
    known = best > 0.5 if protocol.strict_known else best >= 0.5
    top = (best > 0.5 if protocol.strict_top else best >= 0.5) and int(predictions.predicted[row]) == int(
        predictions.labels[row]
    )
    return ByHand(best, known, top)


def figure_by_hand(protocol: Protocol, hits: Sequence[bool], labels: Sequence[int]) -> float:
    """Percent of hits, over the images or over the classes that have images."""
    if protocol.mean == "images":
        return 100 * sum(hits) / len(hits)
    of_class = {label: [h for h, own in zip(hits, labels, strict=True) if own == label] for label in labels}
    return 100 * sum(sum(own) / len(own) for own in of_class.values()) / len(of_class)


def _in_frame(protocol: Protocol, predictions: Predictions, row: int) -> list[list[float]]:
    """The truth boxes of an image, whose sides are SIDE, by the rule that the protocol names."""
    side, resized, margin = predictions.view.side, predictions.view.resized, predictions.view.margin
    original = protocol.extraction.recipe.frame == "original"

    def clipped(v: list[float]) -> list[float]:
        inside = [min(max(x, 0), SIDE) for x in v]
        if original:
            return [min(x, SIDE - 1) for x in inside]
        return [min(max(x * resized / SIDE - margin, 0), side - 1) for x in inside]

    def pixels(v: list[float]) -> list[float]:
        moved = [x / SIDE * resized - margin for x in v]
        return [float(int(max(x, 0))) for x in moved[:2]] + [float(int(min(x, side - 1))) for x in moved[2:]]

    def cropped(v: list[float]) -> list[float]:
        moved = [x * resized / SIDE for x in v]
        ends = [max(x, margin) for x in moved[:2]] + [min(x, margin + side) for x in moved[2:]]
        return [x - margin for x in ends]

    def sides(v: list[float]) -> list[float]:
        x, y = int(v[0]), int(v[1])
        return pixels([x, y, x + int(v[2] - v[0]), y + int(v[3] - v[1])])

    rules: dict[str, Callable[[list[float]], list[float]]] = {
        "clipped": clipped,
        "whole pixels": lambda v: [float(int(x)) for x in clipped([min(int(x), SIDE - 1) for x in v])],
        "moved": lambda v: [float(int(x * (resized / SIDE) - margin)) for x in v],
        "last pixel": lambda v: [v[0], v[1], v[2] - 1, v[3] - 1],
        "whole sides": sides,
        "cropped": cropped,
        "cropped pixels": pixels,
    }
    return [rules[protocol.truths](box) for box in predictions.truths(row).tolist()]


def _iou(a: Sequence[float], b: Sequence[float], extra: int) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0]) + extra
    height = min(a[3], b[3]) - max(a[1], b[1]) + extra
    shared = max(width, 0) * max(height, 0)
    areas = [(box[2] - box[0] + extra) * (box[3] - box[1] + extra) for box in (a, b)]
    union = sum(areas) - shared
    return shared / union if union > 0 else 0.0
