"""The protocols that carry a peer's name, against straight ports of what that peer's public code does.

The ports are written in plain NumPy and OpenCV from the rules alone, with loops over pixels and classes, and
share no code with the package. They agree image by image: the box, its IoU, and every hit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from wsol.data.transforms import View, ViewKind
from wsol.localization.grey import cubehelix_grey
from wsol.localization.predictions import class_ranks
from wsol.registry import PROTOCOLS
from wsol.scoring.judged import Judged
from wsol.scoring.protocols import find_protocols
from wsol.scoring.score import score_maps

Map = NDArray[np.float64]
Box = tuple[float, float, float, float]
Size = tuple[int, int]

SIDE = 56  # of the network's square; 64 before the crop of 56, in the proportion of 256 to 224
RESIZED, MARGIN = 64, 4


# --- the ports: map -> box, and truth -> box, for an image of (width, height)


def spread(raw: Map, eps: float = 0.0) -> Map | None:
    """Between 0 and 1; None where that divides zero by zero."""
    low, high = raw.min(), raw.max()
    return None if high - low + eps == 0 else (raw - low) / (high - low + eps)


def around(mask: NDArray[np.bool_]) -> tuple[int, int, int, int] | None:
    """First and last column and row of what is set."""
    points = [(x, y) for y in range(mask.shape[0]) for x in range(mask.shape[1]) if mask[y, x]]
    if not points:
        return None
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


def flood(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The 8-connected component with the most pixels, the first one met row by row where several have."""
    height, width = mask.shape
    seen = np.zeros_like(mask)
    best: list[tuple[int, int]] = []
    for y in range(height):
        for x in range(width):
            if not mask[y, x] or seen[y, x]:
                continue
            seen[y, x] = True
            found, waiting = [], [(y, x)]
            while waiting:
                j, i = waiting.pop()
                found.append((j, i))
                for v in range(max(j - 1, 0), min(j + 2, height)):
                    for u in range(max(i - 1, 0), min(i + 2, width)):
                        if mask[v, u] and not seen[v, u]:
                            seen[v, u] = True
                            waiting.append((v, u))
            if len(found) > len(best):
                best = found
    largest = np.zeros_like(mask)
    for y, x in best:
        largest[y, x] = True
    return largest


def largest_contour(image: NDArray[np.uint8], level: int) -> Box:
    _, cut = cv2.threshold(image, level, 255, cv2.THRESH_TOZERO)
    contours, _ = cv2.findContours(cut, cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)
    if not contours:
        return (0, 0, 1, 1)
    x, y, w, h = cv2.boundingRect(max(contours, key=cv2.contourArea))
    return (x, y, x + w, y + h)


def danet_box(raw: Map, threshold: float, size: Size) -> Box:
    scaled = spread(raw)
    if scaled is None:
        return (0, 0, 0, 0)
    return around(cv2.resize(scaled, size) >= threshold) or (0, 0, 0, 0)


def danet_truth(box: Box, size: Size) -> Box:
    return (box[0], box[1], box[2] - 1, box[3] - 1)  # from x + width - 1, where x + width is box[2] already


def tscam_box(raw: Map, threshold: float, size: Size) -> Box:
    scaled = spread(cv2.resize(raw, (SIDE, SIDE)))
    image = np.zeros((SIDE, SIDE), np.uint8) if scaled is None else (scaled * 255.0).astype(np.uint8)
    return largest_contour(image, int(threshold * int(image.max())))


def tscam_truth(box: Box, size: Size) -> Box:
    x, y, w, h = (int(v) for v in (box[0], box[1], box[2] - box[0], box[3] - box[1]))
    width, height = size
    return (
        int(max(x / width * SIDE, 0)),
        int(max(y / height * SIDE, 0)),
        int(min((x + w) / width * SIDE, SIDE - 1)),
        int(min((y + h) / height * SIDE, SIDE - 1)),
    )


def adl_box(raw: Map, threshold: float, size: Size) -> Box:
    import matplotlib

    scaled = spread(cv2.resize(raw, (SIDE, SIDE)))
    if scaled is None:
        return (0, 0, 1, 1)
    colours = matplotlib.colormaps["cubehelix"](scaled)[..., :3].astype(np.float32) * 255.0
    image = cv2.cvtColor(colours.astype(np.uint8), cv2.COLOR_RGB2GRAY)
    return largest_contour(image, int(int(image.max()) * threshold))


def adl_truth(box: Box, size: Size) -> Box:
    rates = [RESIZED * 1.0 / size[0], RESIZED * 1.0 / size[1]] * 2
    x0, y0, x1, y1 = (int(v * rate - MARGIN) for v, rate in zip(box, rates, strict=True))
    return (x0, y0, x1, y1)


def bas_box(raw: Map, threshold: float, size: Size, eps: float = 0.0) -> Box:
    scaled = spread(raw, eps)
    if scaled is None:
        return (0, 0, SIDE, SIDE)
    found = around(flood(cv2.resize(scaled, (SIDE, SIDE)) > threshold))
    return (0, 0, SIDE, SIDE) if found is None else (found[0], found[1], found[2] + 1, found[3] + 1)


def bas_truth(box: Box, size: Size) -> Box:
    x0, y0, x1, y1 = (v * (RESIZED / side) for v, side in zip(box, size * 2, strict=True))
    cut = (max(MARGIN, x0), max(MARGIN, y0), min(MARGIN + SIDE, x1), min(MARGIN + SIDE, y1))
    a, b, c, d = ((v - MARGIN) / SIDE * SIDE for v in cut)
    return (a, b, c, d)


def bas_ext_box(raw: Map, threshold: float, size: Size) -> Box:
    return bas_box(raw, threshold, size, eps=1e-5)


def bas_ext_truth(box: Box, size: Size) -> Box:
    width, height = size
    return (
        int(max(box[0] / width * RESIZED - MARGIN, 0)),
        int(max(box[1] / height * RESIZED - MARGIN, 0)),
        int(min(box[2] / width * RESIZED - MARGIN, SIDE - 1)),
        int(min(box[3] / height * RESIZED - MARGIN, SIDE - 1)),
    )


def port_iou(a: Box, b: Box) -> float:
    width = max(0, min(a[2], b[2]) - max(a[0], b[0]) + 1)
    height = max(0, min(a[3], b[3]) - max(a[1], b[1]) + 1)
    areas = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (a, b)]
    union = areas[0] + areas[1] - width * height
    return width * height / union if union > 0 else 0.0


@dataclass(frozen=True)
class Port:
    """One peer: its box, its truth, its rule of a hit for top-k and for GT-known, and its mean."""

    view: ViewKind
    box: Callable[[Map, float, Size], Box]
    truth: Callable[[Box, Size], Box]
    top_hit: Callable[[float], bool]
    known_hit: Callable[[float], bool]
    over_classes: bool = False


def more(overlap: float) -> bool:
    return overlap > 0.5


def at_least(overlap: float) -> bool:
    return overlap >= 0.5


PORTS = {
    "danet": Port("resize", danet_box, danet_truth, more, more),
    "tscam": Port("resize", tscam_box, tscam_truth, more, at_least),
    "adl": Port("crop", adl_box, adl_truth, at_least, at_least),
    "bas": Port("crop", bas_box, bas_truth, more, more, over_classes=True),
    "bas-ext": Port("crop", bas_ext_box, bas_ext_truth, at_least, at_least),
}
FIXED = {"danet": 0.2, "tscam": 0.1, "adl": 0.2, "bas": 0.15, "bas-ext": 0.1}


# --- maps and truth boxes of every sort


def blobs(rng: np.random.Generator) -> Map:
    y, x = np.mgrid[:14, :14]
    raw = rng.normal(0, 0.03, (14, 14))
    for _ in range(rng.integers(1, 5)):
        cx, cy, width = rng.uniform(0, 14), rng.uniform(0, 14), rng.uniform(0.7, 3)
        raw = raw + rng.uniform(0.2, 1) * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * width**2))
    return raw


def steps(rng: np.random.Generator) -> Map:
    """Few levels, at the size of the square: pixels on the threshold, components of equal size."""
    return rng.choice([0.0, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0], (SIDE, SIDE), p=[0.5, *[0.1] * 4, 0.05, 0.05])


def squares(rng: np.random.Generator) -> Map:
    """Equal squares, some with a corner moved: ties between components and between contours."""
    raw = np.zeros((SIDE, SIDE))
    for _ in range(rng.integers(2, 7)):
        y, x = rng.choice([4, 20, 36]), rng.choice([6, 20, 34])
        raw[y : y + 6, x : x + 6] = 1
        if rng.random() < 0.5:
            raw[y, x], raw[y + 5, x - 1] = 0, 1
    return raw


def faint(rng: np.random.Generator) -> Map:
    """So small a range that a constant in the denominator shows."""
    return blobs(rng) * 1e-5


def degenerate() -> Iterator[Map]:
    yield np.zeros((14, 14))
    yield np.full((14, 14), 3.5)
    yield np.full((14, 14), -2.0)
    corner = np.zeros((14, 14))
    corner[-1, -1] = 1
    yield corner
    yield 1 - corner
    # Two components of 16 pixels in the same top row: the first pixel is of the square, the leftmost box of
    # the hook that reaches below it.
    tied = np.zeros((SIDE, SIDE))
    tied[10:14, 20:24] = 1
    tied[10:16, 28] = 1
    tied[15, 18:28] = 1
    yield tied


def truth_near(rng: np.random.Generator, size: Size) -> Box:
    """Of whole pixels or not, inside the image or beyond it by up to a tenth."""
    ends = np.array([*size, *size], dtype=np.float64)
    near, far = rng.uniform(-0.1, 0.6, 2), rng.uniform(0.5, 1.1, 2)
    box = np.concatenate([near, np.maximum(near + 0.05, far)]) * ends
    box = np.round(box) if rng.random() < 0.6 else box
    box = np.maximum(box, 0) if rng.random() < 0.7 else box
    a, b, c, d = box.tolist()
    return (a, b, c, d)


class Maps:
    """Raw maps with truth boxes, labels and class scores, as a source to score."""

    same_map = False
    cut = None

    def __init__(self, port: Port, num: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        kinds = (blobs, steps, squares, faint)
        self.maps = [*degenerate(), *(kinds[i % len(kinds)](rng) for i in range(num))]
        self.sizes = [tuple(map(int, rng.integers(40, 120, 2))) for _ in self.maps]
        self.boxes = [truth_near(rng, self.size(row)) for row in range(len(self.maps))]
        self.labels = rng.choice(6, len(self.maps), p=[0.4, 0.3, 0.1, 0.1, 0.06, 0.04])
        self.classes = tuple("abcdef")
        self.scores = rng.normal(size=(len(self.maps), 6))
        self.scores[np.arange(len(self.maps)), self.labels] += 1
        self.ranks = class_ranks(self.scores, self.labels)
        self.view = View(port.view, SIDE)
        self.classes_by = None

    def __len__(self) -> int:
        return len(self.maps)

    def raw_map(self, row: int) -> Map:
        return self.maps[row]

    def truths(self, row: int) -> Map:
        return np.array([self.boxes[row]])

    def size(self, row: int) -> Size:
        width, height = self.sizes[row]
        return width, height

    def segmentation_path(self, row: int) -> Path | None:
        return None

    def unreadable(self, row: int) -> bool:
        return False


# --- the agreement


def test_every_peer_has_a_port() -> None:
    ours = {"gpca", "wsoleval-v1", "wsoleval-v2"}  # test_wsoleval.py has the latter
    assert set(PORTS) == {p.name for p in find_protocols("all")} - ours
    assert (View("crop", SIDE).resized, View("crop", SIDE).margin) == (RESIZED, MARGIN)


@pytest.mark.parametrize("name", PORTS)
def test_boxes_and_hits_of_every_image(name: str) -> None:
    port, protocol = PORTS[name], PROTOCOLS.create(name)
    source = Maps(port, 24, seed=len(name))
    assert protocol.extraction.fixed == FIXED[name]
    thresholds = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
    judged = Judged.at(source, protocol, thresholds, workers=1)
    known, top = judged.known(), judged.top(1)
    for row in range(len(source)):
        truth = port.truth(source.boxes[row], source.size(row))
        ours = judged.judge.truths(source.view, source.truths(row), source.size(row))
        assert ours.tolist() == [list(truth)], row
        for column, threshold in enumerate(thresholds):
            box = port.box(source.maps[row], threshold, source.size(row))
            assert tuple(judged.found.boxes[row, column].tolist()) == box, (row, threshold)
            overlap = port_iou(box, truth)
            assert judged.overlap[row, column] == overlap, (row, threshold)
            assert known[row, column] == port.known_hit(overlap)
            right = int(np.argmax(source.scores[row])) == source.labels[row]
            assert top[row, column] == (port.top_hit(overlap) and right)


@pytest.mark.parametrize("name", PORTS)
def test_figures_and_their_mean(name: str) -> None:
    """Top-1, top-5 and GT-known at the fixed threshold, over images or over classes."""
    port, protocol = PORTS[name], PROTOCOLS.create(name)
    source = Maps(port, 24, seed=10 + len(name))
    hits: dict[str, list[list[bool]]] = {key: [[] for _ in range(6)] for key in ("top1", "top5", "known")}
    for row, label in enumerate(source.labels.tolist()):
        box = port.box(source.maps[row], FIXED[name], source.size(row))
        overlap = port_iou(box, port.truth(source.boxes[row], source.size(row)))
        order = sorted(range(6), key=lambda c: -source.scores[row, c])
        hits["top1"][label].append(port.top_hit(overlap) and order[0] == label)
        hits["top5"][label].append(port.top_hit(overlap) and label in order[:5])
        hits["known"][label].append(port.known_hit(overlap))

    def figure(by_class: list[list[bool]]) -> float:
        groups = (
            [own for own in by_class if own]
            if port.over_classes
            else [[hit for own in by_class for hit in own]]
        )
        return 100 * math.fsum(sum(own) / len(own) for own in groups) / len(groups)

    scores = score_maps(source, [protocol])[name]
    at = scores.at["fixed"].figures
    assert at["top1_loc"] == pytest.approx(figure(hits["top1"]))
    assert at["top5_loc"] == pytest.approx(figure(hits["top5"]))
    assert at["gt_known_loc"] == pytest.approx(figure(hits["known"]))
    assert (scores.mean == "classes") == port.over_classes
    low, high = scores.at["fixed"].intervals["gt_known_loc"]
    assert low <= at["gt_known_loc"] <= high


def test_the_cases_tell_the_rules_apart() -> None:
    """Else the tests above could pass with any rule: macro from micro means, ties, an IoU of 0.5."""
    source = Maps(PORTS["bas"], 24, seed=13)
    assert len(set(np.bincount(source.labels).tolist())) > 2
    bas = PROTOCOLS.create("bas")
    first = Judged.at(source, bas, [0.15], workers=1).found.boxes
    other = replace(bas, extraction=replace(bas.extraction, box="largest component"))
    assert (Judged.at(source, other, [0.15], workers=1).found.boxes != first).any(), "ties are decided"


def test_the_grey_of_the_colour_table() -> None:
    """Ours is computed by the formula; it is matplotlib's table, and rises with the map."""
    import matplotlib

    table = matplotlib.colormaps["cubehelix"](np.arange(256))[:, :3].astype(np.float32) * 255.0
    grey = cv2.cvtColor(table.astype(np.uint8)[None], cv2.COLOR_RGB2GRAY)[0]
    assert cubehelix_grey().tolist() == grey.tolist()
    assert (np.diff(grey.astype(int)) >= 0).all()
    assert int(np.argmax(grey > int(0.2 * 255))) == 52, "0.2 of the maximum is 52 / 256 of the map"
