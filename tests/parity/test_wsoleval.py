"""`wsoleval-v1` and `-v2` against a straight implementation of their rules: one contour pass per threshold.

The straight one is written from the rules alone and shares no code with the package. Agreement is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from wsol.data.transforms import View
from wsol.scoring.image import ImageScorer
from wsol.scoring.protocols import WSOLEVAL_V1, WSOLEVAL_V2
from wsol.scoring.score import score_maps

Map = NDArray[np.floating]


# --- the straight implementation


def straight_overlaps(
    score_map: Map, truths: list[tuple[int, ...]], thresholds: NDArray[np.float64]
) -> tuple[list[float], list[float]]:
    """The best overlap with a truth box at each threshold: of the largest contour (V1), of any (V2)."""
    image = (score_map * 255).astype(np.uint8)
    height, width = image.shape
    v1, v2 = [], []
    for threshold in thresholds:
        _, binary = cv2.threshold(image, int(threshold * np.max(image)), 255, cv2.THRESH_BINARY)
        contours, _ = cv2.findContours(binary, cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)
        boxes = np.array([cv2.boundingRect(c) for c in contours] or [(0, 0, 0, 0)])
        boxes[:, 2] = np.minimum(boxes[:, 0] + boxes[:, 2], width - 1)
        boxes[:, 3] = np.minimum(boxes[:, 1] + boxes[:, 3], height - 1)
        overlaps = np.max([straight_iou(boxes, truth) for truth in truths], axis=0)
        areas = [cv2.contourArea(c) for c in contours] or [0]
        v1.append(overlaps[areas.index(max(areas))])
        v2.append(overlaps.max())
    return v1, v2


def straight_iou(boxes: NDArray[np.integer], truth: tuple[int, ...]) -> NDArray[np.float64]:
    x0, y0, x1, y1 = boxes.T
    width = np.minimum(x1, truth[2]) - np.maximum(x0, truth[0]) + 1
    height = np.minimum(y1, truth[3]) - np.maximum(y0, truth[1]) + 1
    shared = np.maximum(width, 0) * np.maximum(height, 0)
    own = (truth[2] - truth[0] + 1) * (truth[3] - truth[1] + 1)
    return shared / ((x1 - x0 + 1) * (y1 - y0 + 1) + own - shared)


def straight_truth(box: tuple[float, ...], size: tuple[int, int], side: int) -> tuple[int, ...]:
    width, height = size
    x0, y0 = int(box[0]), int(box[1])
    x1, y1 = min(int(box[2]), width - 1), min(int(box[3]), height - 1)
    scaled = (x0 * side / width, y0 * side / height, x1 * side / width, y1 * side / height)
    return tuple(int(v) for v in scaled)


# --- maps of every sort


def blobs(rng: np.random.Generator, side: int, cells: int = 14) -> Map:
    y, x = np.mgrid[:cells, :cells]
    raw = rng.normal(0, 0.03, (cells, cells))
    for _ in range(rng.integers(1, 5)):
        cx, cy, spread = rng.uniform(0, cells), rng.uniform(0, cells), rng.uniform(0.7, 3)
        raw = raw + rng.uniform(0.2, 1) * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * spread**2))
    resized = cv2.resize(raw, (side, side), interpolation=cv2.INTER_CUBIC)
    return (resized - resized.min()) / (resized.max() - resized.min())


def rings(rng: np.random.Generator, side: int) -> Map:
    """Circles, thin and thick, one inside the other: holes, holes touching, equal areas."""
    canvas = np.zeros((side, side))
    for _ in range(rng.integers(2, 9)):
        centre = tuple(int(v) for v in rng.integers(-3, side + 3, 2))
        thickness = int(rng.choice([1, 1, 2, 5, -1]))
        cv2.circle(canvas, centre, int(rng.integers(1, side // 2)), float(rng.uniform(0, 1)), thickness)
    return canvas


def steps(rng: np.random.Generator, side: int) -> Map:
    """Few grey levels in a small checker of noise: hundreds of contours, many of equal area."""
    return rng.integers(0, 5, (side, side)) / rng.integers(4, 9)


def noise(rng: np.random.Generator, side: int) -> Map:
    return cv2.GaussianBlur(rng.random((side, side)), (0, 0), float(rng.uniform(0.5, 4)))


def degenerate(side: int) -> Iterator[Map]:
    yield np.zeros((side, side))
    yield np.ones((side, side))
    yield np.full((side, side), 0.5)
    yield np.full((side, side), 1e-4)
    for where in ((0, 0), (0, side - 1), (side - 1, side - 1), (side // 2, 0), (side // 2, side // 3)):
        one = np.zeros((side, side))
        one[where] = 1
        yield one
        yield 1 - one
    yield np.tile(np.linspace(0, 1, side), (side, 1))
    yield np.tile(np.linspace(0, 1, side), (side, 1)).T
    frame = np.ones((side, side))
    frame[1:-1, 1:-1] = 0
    yield frame
    yield np.eye(side)
    yield (np.indices((side, side)).sum(axis=0) % 2).astype(float)


def many_maps() -> list[Map]:
    rng = np.random.default_rng(7)
    maps = [blobs(rng, 64) for _ in range(60)] + [rings(rng, 48) for _ in range(60)]
    maps += [steps(rng, 16) for _ in range(20)] + [noise(rng, 24) for _ in range(30)]
    maps += [blobs(rng, 48).astype(np.float32) for _ in range(30)]
    maps += [np.where(blobs(rng, 32, cells=7) > 0.4, 1.0, 0.0) for _ in range(10)]
    return maps + list(degenerate(32))


def truths_for(rng: np.random.Generator, size: tuple[int, int]) -> list[tuple[float, ...]]:
    width, height = size
    boxes: list[tuple[float, ...]] = []
    for _ in range(rng.integers(1, 4)):
        x0, y0 = rng.uniform(0, 0.7 * width), rng.uniform(0, 0.7 * height)
        boxes.append((x0, y0, rng.uniform(x0 + 2, width + 0.9), rng.uniform(y0 + 2, height + 0.9)))
    return boxes


@pytest.mark.long
@pytest.mark.parametrize("num_thresholds", [100, 1000])
def test_every_overlap_is_equal(num_thresholds: int) -> None:
    rng = np.random.default_rng(num_thresholds)
    thresholds = np.arange(0, 1, 1 / num_thresholds)
    maps = many_maps()
    assert len(maps) >= 200
    for number, score_map in enumerate(maps):
        side = score_map.shape[0]
        size = (int(rng.integers(60, 500)), int(rng.integers(60, 500)))
        truths = truths_for(rng, size)
        framed = [straight_truth(t, size, side) for t in truths]
        scorer = ImageScorer(score_map, truths, size, View("resize", side))
        v1, v2 = straight_overlaps(score_map, framed, thresholds)
        found = scorer.find(WSOLEVAL_V2.for_given_maps(), thresholds)
        assert found.single.tolist() == v1, f"map {number}, V1"
        assert found.best.tolist() == v2, f"map {number}, V2"


def test_hole_contours_count_in_v2() -> None:
    """A thick frame around a hole: the hole's contour fits the truth, the outer one does not."""
    score_map = np.zeros((64, 64))
    score_map[2:60, 2:60] = 1
    score_map[20:40, 20:40] = 0
    scorer = ImageScorer(score_map, [(19, 19, 41, 41)], (64, 64), View("resize", 64))
    at_half = np.array([0.5])
    v1 = scorer.find(WSOLEVAL_V1.for_given_maps(), at_half)
    v2 = scorer.find(WSOLEVAL_V2.for_given_maps(), at_half)
    assert v1.single[0] < 0.2
    assert v2.best[0] == 1.0


class Maps:
    """A list of score maps as a source."""

    same_map = False
    classes_by = None
    cut = None
    ranks = None
    classes = ("bird",)

    def __init__(self, maps: list[Map], truths: list[list[tuple[float, ...]]], size: tuple[int, int]) -> None:
        self.maps, self.all_truths, self.one_size = maps, truths, size
        self.labels = np.zeros(len(maps), dtype=np.int64)
        self.view = View("resize", maps[0].shape[0])

    def __len__(self) -> int:
        return len(self.maps)

    def raw_map(self, row: int) -> Map:
        return self.maps[row]

    def truths(self, row: int) -> NDArray[np.float64]:
        return np.array(self.all_truths[row])

    def size(self, row: int) -> tuple[int, int]:
        return self.one_size

    def segmentation_path(self, row: int) -> Path | None:
        return None

    def unreadable(self, row: int) -> bool:
        return False


@pytest.mark.parametrize("step", [0.01, pytest.param(0.001, marks=pytest.mark.long)])
def test_the_figures_of_a_data_set_are_equal(step: float) -> None:
    """MaxBoxAcc and MaxBoxAccV2: the best threshold of the data set's accuracy, for V2 each IoU's own."""
    rng = np.random.default_rng(3)
    side, size = 48, (120, 90)
    maps = [blobs(rng, side) for _ in range(25)] + [rings(rng, side) for _ in range(25)]
    truths = [truths_for(rng, size) for _ in maps]
    thresholds = np.arange(0, 1, step)
    correct = {(v2, level): np.zeros(len(thresholds)) for v2 in (False, True) for level in (30, 50, 70)}
    for score_map, boxes in zip(maps, truths, strict=True):
        framed = [straight_truth(t, size, side) for t in boxes]
        for v2, overlaps in enumerate(straight_overlaps(score_map, framed, thresholds)):
            for level in (30, 50, 70):
                correct[bool(v2), level] += np.array(overlaps) >= level / 100
    best = {key: (hits * 100.0 / len(maps)).max() for key, hits in correct.items()}

    given = [p.for_given_maps() for p in (WSOLEVAL_V1, WSOLEVAL_V2)]
    protocols = [replace(p, extraction=replace(p.extraction, step=step)) for p in given]
    ours = score_maps(Maps(maps, truths, size), protocols)
    by_iou = {"0.3": best[True, 30], "0.5": best[True, 50], "0.7": best[True, 70]}
    for name in ("wsoleval-v1", "wsoleval-v2"):
        assert ours[name]["max_box_acc"] == best[False, 50]
        assert ours[name].by_iou == by_iou
        assert ours[name]["max_box_acc_v2"] == pytest.approx(np.average(list(by_iou.values())), abs=1e-12)
    assert ours["wsoleval-v1"]["gt_known_loc"] == best[False, 50]
    assert ours["wsoleval-v2"]["gt_known_loc"] == best[True, 50]


def test_no_map_mixes_thresholds() -> None:
    """Each image has a threshold that hits, but no threshold hits both: MaxBoxAcc is one half, not one."""
    low, high = np.zeros((32, 32)), np.zeros((32, 32))
    low[4:12, 4:12] = 1  # a small peak on a wide plateau: the truth is the plateau, found below 0.3 only
    low[low == 0] = 0.3
    low[:2], low[:, :2] = 0, 0
    high[4:12, 4:12] = 1  # the truth is the peak, found from 0.3 on only
    high[high == 0] = 0.3
    source = Maps([low, high], [[(2, 2, 32, 32)], [(4, 4, 12, 12)]], (32, 32))
    figures = score_maps(source, [WSOLEVAL_V1.for_given_maps()])["wsoleval-v1"]
    assert figures["max_box_acc"] == 50.0


def test_raw_maps_are_resized_then_normalised() -> None:
    """From a raw 14 x 14 map: bicubic, then min-max, in double precision."""
    rng = np.random.default_rng(5)
    view = View("resize", 224)
    thresholds = np.arange(0, 1, 0.001)
    for _ in range(5):
        raw = rng.normal(size=(14, 14)).cumsum(axis=0).cumsum(axis=1)
        resized = cv2.resize(raw, (224, 224), interpolation=cv2.INTER_CUBIC)
        resized -= resized.min()
        resized /= resized.max()
        found = ImageScorer(raw, [(30, 20, 150, 160)], (224, 224), view).find(WSOLEVAL_V2, thresholds)
        v1, v2 = straight_overlaps(np.clip(resized, 0, 1), [(30, 20, 150, 160)], thresholds)
        assert (found.single.tolist(), found.best.tolist()) == (v1, v2)
