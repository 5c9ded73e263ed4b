from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wsol.data.transforms import View
from wsol.errors import DataError
from wsol.scoring import pxap
from wsol.scoring.pxap import PixelCounts, read_regions


def straight_average_precision(scores: np.ndarray, truth: np.ndarray) -> float:
    """By definition, at the lower edges of the bins from above."""
    area, before = 0.0, 0.0
    for edge in [*np.arange(0, 1, 0.001), 1.0][::-1]:
        called = scores >= edge
        if called.any():
            recall = (called & truth).sum() / truth.sum()
            area += (called & truth).sum() / called.sum() * (recall - before)
            before = recall
    return area


def count_pixels(scores: np.ndarray, path: Path, view: View) -> PixelCounts:
    with Image.open(path) as mask:
        size = mask.size
    return pxap.count_pixels(scores, read_regions(path, view, size))


def save_mask(path: Path, mask: np.ndarray, white: int = 255) -> Path:
    Image.fromarray((mask * white).astype(np.uint8)).save(path)
    return path


@pytest.mark.parametrize("white", [1, 255])
def test_against_the_definition(tmp_path: Path, white: int) -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((32, 32))
    truth = rng.random((32, 32)) < scores
    path = save_mask(tmp_path / "m.png", truth, white)
    found = count_pixels(scores, path, View("resize", 32)).average_precision()
    assert found == pytest.approx(straight_average_precision(scores, truth), abs=1e-12)


def test_a_perfect_and_a_useless_map(tmp_path: Path) -> None:
    truth = np.zeros((16, 16), bool)
    truth[4:8, 4:8] = True
    path = save_mask(tmp_path / "m.png", truth)
    view = View("resize", 16)
    assert count_pixels(truth.astype(float), path, view).average_precision() == 1.0
    assert count_pixels(np.full((16, 16), 0.5), path, view).average_precision() == truth.mean()


def test_ignored_pixels_count_neither_way(tmp_path: Path) -> None:
    """The false alarm lies where pixels are ignored: precision stays perfect. The object is never ignored."""
    truth = np.zeros((16, 16), bool)
    truth[:8] = True
    scores = truth.astype(float)
    scores[12:] = 1
    path = save_mask(tmp_path / "m.png", truth)
    view = View("resize", 16)
    assert count_pixels(scores, path, view).average_precision() < 1
    ignore = np.zeros((16, 16), bool)
    ignore[12:] = True
    ignore[:2] = True
    save_mask(tmp_path / "m_ignore.png", ignore)
    counts = count_pixels(scores, path, view)
    assert counts.average_precision() == 1.0
    assert counts.on.sum() == truth.sum()


def test_the_mask_follows_the_view(tmp_path: Path) -> None:
    """Nearest to 256, then the centre: the outer 16 pixels are not seen."""
    mask = np.zeros((256, 256), bool)
    mask[:16] = True
    path = save_mask(tmp_path / "m.png", mask)
    assert count_pixels(np.zeros((224, 224)), path, View("crop", 224)).on.sum() == 0
    assert count_pixels(np.zeros((224, 224)), path, View("resize", 224)).on.sum() == 14 * 224


def test_a_segmentation_of_another_size_than_its_image_is_refused(tmp_path: Path) -> None:
    path = save_mask(tmp_path / "m.png", np.ones((40, 30), bool))
    with pytest.raises(DataError, match=r"m\.png: a segmentation of 30 x 40 for an image of 60 x 80"):
        read_regions(path, View("resize", 16), (60, 80))
    save_mask(tmp_path / "m_ignore.png", np.ones((20, 30), bool))
    with pytest.raises(DataError, match=r"m_ignore\.png: a segmentation of 30 x 20"):
        read_regions(path, View("resize", 16), (30, 40))


def test_no_object_at_all() -> None:
    assert PixelCounts(np.zeros(3, int), np.ones(3, int)).average_precision() == 0.0
