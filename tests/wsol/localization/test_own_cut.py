"""A raw map with a cut of its own: the same foreground at every threshold and under every protocol."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsol.data.transforms import View
from wsol.localization.cutter import MapCutter
from wsol.localization.found_object import largest_component, locate
from wsol.scoring.map_arrays import MapArrays
from wsol.scoring.protocols import Protocol, find_protocols
from wsol.scoring.score import score_maps
from wsol.scoring.scores import Scores

SIZE = (60, 40)
PROTOCOLS = find_protocols("all")


def raw_map(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(6, 6))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
@pytest.mark.parametrize("cut", [0.0, 0.4, -1.0])
def test_foreground_is_what_lies_above_the_cut(protocol: Protocol, cut: float) -> None:
    extraction, view = protocol.extraction, View(protocol.view, 24)
    for seed in range(5):
        raw = raw_map(seed)
        cutter = MapCutter(raw, SIZE, view, cut=cut)
        frame = extraction.frame_size(view, SIZE)
        kind = {"bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}[extraction.recipe.interpolation]
        expected = cv2.resize(raw, frame, interpolation=kind) > cut
        score_map = cutter.score_map(extraction)
        np.testing.assert_array_equal(score_map > 0, expected)
        assert score_map.min() >= 0
        assert score_map.max() == pytest.approx(1)
        found = cutter.find(extraction, np.array([0.0, 0.2, 0.9]))
        boxes = found.single[found.level]
        assert (boxes == boxes[0]).all(), "no threshold matters"
        if extraction.box == "all foreground":
            y, x = np.nonzero(expected)
            around = np.array([[x.min(), y.min(), x.max() + 1, y.max() + 1]])
            assert boxes[0].tolist() == extraction.end(around, frame)[0].tolist()


def test_nothing_above_the_cut_is_an_empty_foreground() -> None:
    found = MapCutter(-1 - raw_map(0) ** 2, SIZE, View("resize", 24), cut=0.0).find(
        PROTOCOLS[0].extraction, np.array([0.2])
    )
    assert found.empty.all()
    assert found.single.tolist() == [PROTOCOLS[0].extraction.empty_box((24, 24)).tolist()]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 100))
def test_the_scale_of_the_map_does_not_matter(seed: int, scale: float) -> None:
    view = View("resize", 24)
    one, other = (
        MapCutter(raw_map(seed) * s, SIZE, view, cut=0.0).find(PROTOCOLS[0].extraction, np.zeros(1))
        for s in (1.0, scale)
    )
    assert one.single.tolist() == other.single.tolist()


class RawMaps(MapArrays):
    """Maps that their head cuts at 0, of images without predicted classes."""

    cut = 0.0  # type: ignore[assignment]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
def test_scores_hold_the_cut_and_no_other_threshold(protocol: Protocol) -> None:
    maps = [raw_map(seed) for seed in range(6)]
    source = RawMaps(maps, [(5, 5, 40, 30)] * 6, View(protocol.view, 24), [SIZE] * 6)
    scores = score_maps(source, [protocol])[protocol.name]
    assert (scores.cut, scores.threshold, scores.threshold_kind) == (0.0, 0.0, "fixed")
    assert list(scores.at) == ["fixed"]
    assert scores.default_threshold() == 0
    assert scores["gt_known_loc"] == scores.at["fixed"].figures["gt_known_loc"]
    assert "top1_loc" not in scores
    assert "top1_cls" not in scores
    assert scores.at_kind("held_out") == scores.at_kind("oracle") == scores.figures
    assert Scores.from_json(scores.to_json()) == scores
    # The baseline is cut as the protocol says.
    plain = score_maps(MapArrays(maps, [(5, 5, 40, 30)] * 6, source.view, [SIZE] * 6), [protocol])
    assert scores.centre_box == plain[protocol.name].centre_box


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_box_of_an_object_is_the_one_around_its_mask(seed: int) -> None:
    image = np.zeros((40, 60, 3), np.uint8)
    found = locate(raw_map(seed).astype(np.float32), image, View("resize", 24), 0.0, 0, "object")
    assert found.is_there
    (one,) = found.localization.found
    y, x = np.nonzero(found.mask)
    assert one.box == (x.min(), y.min(), x.max() + 1, y.max() + 1)
    assert 0 < one.score <= 1
    assert not locate(np.full((6, 6), -1, np.float32), image, View("resize", 24), 0.0, 0, "object").is_there


def test_the_largest_component_has_the_most_pixels_and_touches_by_corners() -> None:
    drawn = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]], dtype=bool)
    expected = np.zeros_like(drawn)
    expected[0, 0] = expected[1, 1] = True  # between equals: the topmost, then the leftmost
    np.testing.assert_array_equal(largest_component(drawn), expected)
