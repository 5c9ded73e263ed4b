"""A finder: the same boxes as evaluation cuts, for photos in any form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from wsol.config import Backbone, Head, Model
from wsol.data.transforms import View
from wsol.errors import ConfigError
from wsol.localization.cutter import MapCutter
from wsol.localization.extraction import Extraction
from wsol.localization.finder import Finder
from wsol.models.localizer import build_localizer
from wsol.scoring.protocols import find_protocols

CLASSES = ("001.Blue_Jay", "002.Crow", "003.Robin")


@pytest.fixture(scope="module")
def finder() -> Finder:
    torch.manual_seed(0)
    model = Model(Backbone.of("tiny"), weights="none", head=Head.of("cam", channels=8))
    localizer = build_localizer(model, len(CLASSES)).eval()
    return Finder(localizer, CLASSES, "gpca", Extraction(box="largest component"), 0.3, View("resize", 64))


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_nothing_in_nothing_out(finder: Finder) -> None:
    assert finder.batch([]) == []


def test_a_path_a_picture_and_an_array_are_one_photo(finder: Finder, photo: Path) -> None:
    with Image.open(photo) as picture:
        found = finder.batch([photo, str(photo), picture, np.asarray(picture)])
    assert all(one.found == found[0].found for one in found)


def test_the_box_is_cut_from_the_map_of_its_class(finder: Finder, photo: Path) -> None:
    found = finder(photo, topk=2)
    assert [one.score for one in found.found] == sorted((one.score for one in found.found), reverse=True)
    assert (found.label, found.name) == (found.best.label, CLASSES[found.best.label])
    square = finder.view.apply(np.asarray(Image.open(photo))).transpose(2, 0, 1).copy()
    with torch.inference_mode():
        output = finder.localizer(torch.from_numpy(square)[None])
    for one in found.found:
        raw = output.maps[0, one.label].numpy()
        boxes = MapCutter(raw, (50, 40), finder.view).find(finder.extraction, np.array([0.3]))
        assert one.box == finder.extraction.to_original(finder.view, boxes.single[0], (50, 40))


def test_one_class_alone(finder: Finder, photo: Path) -> None:
    for name in ("002.Crow", "crow", "Crow"):
        found = finder(photo, class_name=name)
        assert [(one.label, one.name) for one in found.found] == [(1, "002.Crow")]
    with pytest.raises(ConfigError, match="does not know the class 'Dodo'"):
        finder(photo, class_name="Dodo")
    with pytest.raises(ConfigError, match="topk 0: at least 1 class"):
        finder(photo, topk=0)


@pytest.mark.parametrize("protocol", [p.name for p in find_protocols("all")])
@pytest.mark.parametrize("label", [None, 1])
def test_many_thresholds_give_the_box_of_each(
    finder: Finder, photo: Path, protocol: str, label: int | None
) -> None:
    """Of all thresholds at once, each box is the one that a finder with this threshold draws."""
    chosen = find_protocols(protocol)[0]
    find = replace(finder, extraction=chosen.extraction, view=View(chosen.view, 64))
    thresholds = np.unique([*(i / 100 for i in range(100)), 0.335])
    image = np.asarray(Image.open(photo))
    found = find.at_thresholds(find.view.apply(image), (50, 40), thresholds, label)
    assert len({box for box, _ in found.boxes}) > 5
    for threshold, (box, empty) in zip(thresholds.tolist(), found.boxes, strict=True):
        one = replace(find, threshold=threshold)(photo, class_name=None if label is None else CLASSES[label])
        assert (one.box, one.best.empty) == (box, empty)
        assert (one.label, one.score) == (found.label, pytest.approx(found.score))
    assert [label for label, _ in found.ranking] == [one.label for one in find(photo).found]
    assert found.region == one.region
    assert found.heat.shape == (64, 64)
