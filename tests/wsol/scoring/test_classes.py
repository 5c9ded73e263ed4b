"""Scores of classes alone, against counting by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from wsol.data.transforms import View
from wsol.errors import DataError
from wsol.localization.predictions import Header, Predictions, PredictionsWriter
from wsol.records import DataIndex, Sample
from wsol.runs.files import new_draft_folder
from wsol.scoring.classes import score_classes
from wsol.scoring.protocols import find_protocols
from wsol.scoring.score import score_maps
from wsol.scoring.scores import Evaluation, Scores

CLASSES = tuple("abcdefg")


def make_predictions(path: Path, num: int = 40) -> Predictions:
    """Random logits of images without boxes and without maps; the first image could not be read."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 6, num).tolist()  # class g has no image
    samples = [Sample(f"{i}.png", path / f"{i}.png", label, (), "test") for i, label in enumerate(labels)]
    index = DataIndex("made", path, tuple(samples), CLASSES)
    header = Header.of(index, samples, "test", View("resize", 32))
    folder = path / "predictions"
    writer = PredictionsWriter(folder, new_draft_folder(folder, parents=True), header)
    writer.start(labels, [None] * num)
    scores = draw.normal(size=(num, len(CLASSES))).astype(np.float32)
    scores[0, labels[0]] = 99
    writer.write(np.arange(num), scores, None, np.arange(num) == 0)
    return writer.finish()


def test_figures_are_those_of_counting_by_hand(tmp_path: Path) -> None:
    source = make_predictions(tmp_path)
    scores = score_classes(source, find_protocols("classes")[0])
    first = fifth = 0
    for row, label in enumerate(source.labels.tolist()):
        order = np.argsort(-source.scores[row], kind="stable").tolist()
        first += row > 0 and order[0] == label
        fifth += row > 0 and label in order[:5]
    assert scores["top1_cls"] == pytest.approx(100 * first / 40)
    assert scores["top5_cls"] == pytest.approx(100 * fifth / 40)
    for key in ("top1_cls", "top5_cls"):
        low, high = scores.intervals[key]
        assert low < scores[key] < high
    assert [row.name for row in scores.per_class] == list("abcdef")
    total = sum(row.num_images * row.figures["top1_cls"] for row in scores.per_class)
    assert total / 40 == pytest.approx(scores["top1_cls"])
    assert not scores.localizes


def test_there_and_back_and_printed(tmp_path: Path) -> None:
    scores = score_classes(make_predictions(tmp_path), find_protocols("classes-crop")[0])
    assert Scores.from_json(json.loads(json.dumps(scores.to_json()))) == scores
    printed = str(Evaluation({"classes-crop": scores}, 40))
    assert f"{100 - scores['top1_cls']:.2f}" in printed
    assert "top-5 error" in printed
    assert "GT-known" not in printed


def test_maps_are_not_scored_by_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="classes: measures classes alone"):
        score_maps(make_predictions(tmp_path), find_protocols("classes"))


def test_all_stands_for_the_protocols_that_measure_boxes() -> None:
    assert all(p.boxes for p in find_protocols("all"))
