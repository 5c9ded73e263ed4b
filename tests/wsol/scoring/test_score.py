"""The figures of a handful of images, by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from wsol.localization.predictions import Predictions
from wsol.records import Box
from wsol.scoring.baseline import CentreMaps, centre_map
from wsol.scoring.protocols import GPCA, TSCAM, WSOLEVAL_V1, WSOLEVAL_V2, find_protocols
from wsol.scoring.score import HeldOut, choose_threshold, hold_out_thresholds, score_maps
from wsol.scoring.scores import ClassScores
from wsol.scoring.sweep import Hits, count_hits

SIDE = 32
Made = Callable[..., Predictions]
TRUTH = Box(8, 8, 24, 24)


def square(x0: int, x1: int, value: float = 1.0) -> NDArray[np.float64]:
    canvas = np.zeros((SIDE, SIDE))
    canvas[x0:x1, x0:x1] = value
    return canvas


@pytest.fixture
def five(make_predictions: Made) -> Predictions:
    """Class and box right; class right, box a part; second class, box right; sixth, box right; unreadable."""
    maps = np.stack([square(8, 24), square(8, 12), square(8, 24), square(8, 24), square(8, 24)])
    scores = np.zeros((5, 7))
    scores[0, 0] = scores[1, 0] = scores[4, 0] = 9
    scores[2, 3], scores[2, 0] = 9, 8
    scores[3, 1:6] = 5
    return make_predictions(maps, [0] * 5, [[TRUTH]] * 5, scores, failed=[4])


def test_the_five_figures(five: Predictions) -> None:
    figures = score_maps(five, [GPCA])["gpca"]
    assert figures.num_images == 5
    assert figures["top1_cls"] == 40.0  # images 0 and 1; the unreadable one does not count
    assert figures["top5_cls"] == 60.0
    assert figures["gt_known_loc"] == 60.0  # images 0, 2 and 3
    assert figures["top1_loc"] == 20.0
    assert figures["top5_loc"] == 40.0  # images 0 and 2
    assert (figures.threshold, figures.threshold_kind) == (0.2, "fixed")
    assert figures.errors == {
        "hit": 1,
        "wrong class": 2,
        "several instances": 0,
        "part of the object": 1,
        "too much around it": 0,
        "wrong place": 0,
        "unreadable image": 1,
    }
    assert figures.per_class == (
        ClassScores("class 0", 5, {"top1_cls": 40, "top1_loc": 20, "top5_loc": 40, "gt_known_loc": 60}),
    )
    assert five.faults() == {"unreadable_images": ["c0/4.jpg"], "not_finite_maps": [], "constant_maps": []}


def test_every_kind_of_threshold_is_labelled(make_predictions: Made) -> None:
    """Faint surroundings of 0.4: the truth is the core, so a threshold above 0.4 is needed."""
    maps = np.stack([np.maximum(square(8, 24), square(0, 31, 0.4))] * 4)
    scores = np.eye(4, 5)
    predictions = make_predictions(maps, range(4), [[TRUTH]] * 4, scores)
    figures = score_maps(predictions, [GPCA], {"gpca": HeldOut(0.6, 3, 4)})["gpca"]
    assert list(figures.at) == ["fixed", "held_out", "oracle"]
    assert figures.at["fixed"].figures["gt_known_loc"] == 0.0
    held_out = figures.at["held_out"]
    assert (held_out.threshold, held_out.num_images, held_out.num_boxes) == (0.6, 3, 4)
    assert held_out.figures == {
        "top1_loc": 100.0,
        "top5_loc": 100.0,
        "gt_known_loc": 100.0,
        "box_acc": 100.0,
        "box_acc_v2": 100.0,
    }
    assert figures.at["oracle"].figures["gt_known_loc"] == 100.0
    assert 0.4 <= figures.at["oracle"].threshold < 1
    assert figures.default_threshold() == 0.6, "pictures never use the oracle's"
    assert figures.at_kind("held_out")["gt_known_loc"] == 100.0
    assert figures["gt_known_loc"] == 0.0, "the headline of gpca is its fixed threshold"
    assert figures["max_box_acc"] == 100.0


def test_the_held_out_threshold_is_the_one_that_hits_there(make_predictions: Made) -> None:
    maps = np.stack([np.maximum(square(8, 24), square(0, 31, 0.7))] * 3)
    predictions = make_predictions(maps, [0] * 3, [[TRUTH], [TRUTH], []], np.eye(3, 5), name="held")
    chosen = hold_out_thresholds(predictions, [GPCA])["gpca"]
    assert 0.7 <= chosen.threshold < 1
    assert (chosen.num_images, chosen.num_boxes) == (3, 2)


def test_ties_go_to_the_middle() -> None:
    counts = np.zeros((1, 7, 100), dtype=np.int64)
    counts[0, 0, 40:61] = 5
    assert choose_threshold(Hits(np.array([5]), counts).known, GPCA) == pytest.approx(0.5)


def test_max_box_acc_never_mixes_thresholds(make_predictions: Made) -> None:
    """One image is hit above 0.5 only, the other below only: the data set's best is one half."""
    inner = np.maximum(square(8, 24), square(0, 31, 0.5))
    predictions = make_predictions(
        np.stack([inner, inner]), [0, 0], [[TRUTH], [Box(0, 0, 31, 31)]], np.eye(2, 5)
    )
    for name, figures in score_maps(predictions, [GPCA, WSOLEVAL_V1, TSCAM]).items():
        assert figures["max_box_acc"] == 50.0, name


def test_v2_maximises_each_iou_on_its_own(make_predictions: Made) -> None:
    """IoU 0.7 needs the core, and at IoU 0.3 the wide surroundings of both images hit. One threshold for all
    three would give 50 at best: 100, 0 and 0 below 0.5, or 50, 50 and 50 above."""
    first = np.maximum(square(8, 24), square(2, 30, 0.5))
    second = np.maximum(square(8, 12), square(4, 28, 0.5))
    predictions = make_predictions(np.stack([first, second]), [0, 0], [[TRUTH], [TRUTH]], np.eye(2, 5))
    figures = score_maps(predictions, [WSOLEVAL_V2])["wsoleval-v2"]
    by_iou = figures.by_iou
    # below 0.5: IoUs 17^2/29^2 = 0.344 and 17^2/25^2 = 0.46; above: 1 and 5^2/17^2 = 0.087
    assert by_iou == {"0.3": 100.0, "0.5": 50.0, "0.7": 50.0}
    assert figures["max_box_acc_v2"] == pytest.approx(200 / 3)


@pytest.mark.long
def test_one_and_two_processes_agree(make_predictions: Made) -> None:
    rng = np.random.default_rng(0)
    maps = rng.normal(size=(150, 7, 7)).cumsum(axis=1).cumsum(axis=2)
    corners = rng.uniform(0, 12, (150, 2))
    boxes = [[Box(x, y, x + 12, y + 15)] for x, y in corners.tolist()]
    predictions = make_predictions(maps, rng.integers(0, 5, 150).tolist(), boxes, rng.normal(size=(150, 5)))
    protocols = [
        replace(p, extraction=replace(p.extraction, step=0.05), classes_by="view", mean="classes")
        for p in find_protocols(["gpca", "wsoleval-v2", "danet", "tscam"])
    ]
    assert score_maps(predictions, protocols, workers=1) == score_maps(predictions, protocols, workers=2)


def test_a_protocol_scores_the_same_alone_and_beside_others(five: Predictions) -> None:
    """What protocols share between them must not leak from one to the other."""
    every = [replace(p, classes_by="view") for p in find_protocols(["all"]) if p.view == "resize"]
    together = score_maps(five, every)
    for protocol in every:
        assert score_maps(five, [protocol])[protocol.name] == together[protocol.name]


def test_a_protocol_of_the_other_view_is_refused(five: Predictions) -> None:
    with pytest.raises(ValueError, match="adl: not for maps of the view 'resize'"):
        score_maps(five, find_protocols(["adl"]))
    with pytest.raises(ValueError, match="danet: not for classes by 'view'"):
        score_maps(five, find_protocols(["danet"]))


def test_intervals_hold_the_figure(five: Predictions) -> None:
    figures = score_maps(five, [GPCA])["gpca"]
    for name, (low, high) in figures.intervals.items():
        assert low <= figures[name] <= high, name


def test_the_centre_box(make_predictions: Made) -> None:
    """A centred truth is hit by the baseline at some threshold, one in the corner is not."""
    maps = np.zeros((2, 7, 7))
    predictions = make_predictions(maps, [0, 0], [[Box(8, 8, 24, 24)], [Box(0, 0, 6, 6)]], np.eye(2, 5))
    centre = score_maps(predictions, [WSOLEVAL_V1])["wsoleval-v1"].centre_box
    assert centre["max_box_acc"] == 50.0
    peak = centre_map(224)
    assert peak[111, 111] == peak.max()
    np.testing.assert_array_equal(peak, peak[::-1, ::-1])


def test_the_baseline_shares_boxes_without_changing_them(make_predictions: Made) -> None:
    """Found once for all images or afresh for each: the same hits."""
    rng = np.random.default_rng(1)
    corners = rng.uniform(0, 12, (20, 2))
    boxes = [[Box(x, y, x + 14, y + 12)] for x, y in corners.tolist()]
    predictions = make_predictions(np.zeros((20, 4, 4)), [0] * 20, boxes, np.eye(20, 5))
    shared = CentreMaps(predictions)
    alone = CentreMaps(predictions)
    alone.same_map = False
    protocols = find_protocols(["gpca", "wsoleval-v2", "danet"])
    for name, hits in count_hits(shared, protocols).items():
        np.testing.assert_array_equal(hits.counts, count_hits(alone, protocols)[name].counts)
