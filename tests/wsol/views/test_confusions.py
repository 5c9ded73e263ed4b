"""What confusions cost: against counting image by image, and as a part of the protocol's own figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.evaluated_runs import judged_by_hand
from wsol.run import Run
from wsol.scoring.means import percent_over
from wsol.scoring.protocols import find_protocols
from wsol.views.confusions import Misnamed, confusions, costly_pairs, worth
from wsol.views.report_classes import class_views, confusion_section, misnamed_images
from wsol.views.side_by_side import measure

GPCA = find_protocols("gpca")[0]


def made(seed: int) -> Misnamed:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 4, 60)
    named = (true + rng.integers(1, 4, 60)) % 4
    return Misnamed(np.arange(60), true, named, rng.random(60) < 0.4, np.full(60, 0.5))


def test_pairs_are_those_of_counting_image_by_image() -> None:
    runs = [made(0), made(1)]
    pairs = costly_pairs(runs)
    assert [sum(p.points) for p in pairs] == sorted((sum(p.points) for p in pairs), reverse=True)
    seen = set()
    for pair in pairs:
        a, b = pair.first.true, pair.first.named
        assert (pair.second.true, pair.second.named) == (b, a)
        assert frozenset((a, b)) not in seen
        seen.add(frozenset((a, b)))
        for run, points in zip(runs, pair.points, strict=True):
            lost = 0
            for true, named, passed in zip(run.true, run.named, run.passed, strict=True):
                lost += {int(true), int(named)} == {a, b} and bool(passed)
            assert points == pytest.approx(0.5 * lost)
    for place, run in enumerate(runs):
        assert run.cost() == pytest.approx(sum(p.points[place] for p in pairs))


def test_every_wrong_name_is_counted_once() -> None:
    runs = [made(2), made(3)]
    found = confusions(runs)
    assert len({(c.true, c.named) for c in found}) == len(found)
    assert [sum(c.images[r] for c in found) for r in range(2)] == [60, 60]
    assert [sum(c.passed[r] for c in found) for r in range(2)] == [int(run.passed.sum()) for run in runs]
    assert all(c.true != c.named for c in found)


@pytest.mark.parametrize("name", ["gpca", "wsoleval-v2", "bas"])
def test_hits_and_cost_are_all_passing_boxes(evaluated: Path, name: str) -> None:
    protocol = find_protocols(name)[0]
    (measured,) = measure([Run(evaluated)], protocol)
    threshold = measured.scores.threshold
    true, _ = measured.judge([threshold])
    (wrong,) = misnamed_images([measured], [true])
    predictions = measured.predictions
    by_hand = [judged_by_hand(protocol, predictions, row, threshold) for row in range(len(predictions))]
    labels = predictions.labels
    rows = [r for r in range(len(labels)) if predictions.predicted[r] not in (-1, labels[r])]
    assert wrong.rows.tolist() == rows
    assert len(rows) > 1
    hits = percent_over(np.array([image.top for image in by_hand]), np.asarray(labels), protocol.mean)
    assert measured.scores["top1_loc"] == pytest.approx(float(hits))
    assert float(hits) + wrong.cost() == pytest.approx(float(true.percent(true.passed[:, 0])))


def test_the_worth_of_images_sums_to_all_percent(evaluated: Path) -> None:
    for protocol in find_protocols("all"):
        (measured,) = measure([Run(evaluated)], protocol)
        true, _ = measured.judge([0.2])
        assert worth(true).sum() == pytest.approx(100)
        hits = true.known()[:, 0]
        assert float(true.percent(hits)) == pytest.approx(float(worth(true)[hits].sum()))


def test_the_views_of_classes_hold_what_was_scored(evaluated: Path) -> None:
    (measured,) = measure([Run(evaluated)], GPCA)
    true, _ = measured.judge([measured.scores.threshold])
    wrong = misnamed_images([measured], [true])
    views = class_views([measured], [true], wrong)
    (own,) = views["runs"]
    labels = np.asarray(measured.predictions.labels)
    assert own["images"] == [int((labels == c).sum()) for c in range(3)]
    assert [sum(counts) for counts in own["outcomes"]] == own["images"]
    column = [figure["label"] for figure in views["figures"]].index("top-1 loc")
    for row in measured.scores.per_class:
        label = measured.predictions.classes.index(row.name)
        assert own["of_class"][label][column] == f"{row.figures['top1_loc']:.1f}"
    section = confusion_section([measured], wrong, np.array([0, 1, 2]))
    assert section is not None
    assert all(place < 3 for row in section.rows for place in row.shots), "only what the gallery shows"


def test_without_wrong_names_there_is_no_section(evaluated: Path) -> None:
    (measured,) = measure([Run(evaluated)], GPCA)
    none = Misnamed(*(np.zeros(0, dtype) for dtype in (int, int, int, bool, float)))
    assert none.cost() == 0
    assert costly_pairs([none]) == []
    assert confusion_section([measured], [none], np.arange(3)) is None
