"""The contact sheet: who is on it, and where the boxes are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from wsol.errors import DataError, RunFolderError
from wsol.records import Box, DataIndex, Sample
from wsol.views.contact_sheet import BOX_COLOUR, GAP, HEADER, TILE, choose_samples, draw_contact_sheet


def index_of(counts: list[int], root: Path = Path()) -> DataIndex:
    samples = [
        Sample(f"{label}/{i}", root / f"{label}_{i}.png", label, (Box(20, 10, 60, 30),), "train", (80, 40))
        for label, count in enumerate(counts)
        for i in range(count)
    ]
    return DataIndex("made", root, tuple(samples), tuple(f"{i:03d}.A_bird" for i in range(len(counts))))


def test_classes_share_the_sheet_evenly_and_every_time_alike() -> None:
    index = index_of([10] * 40)
    chosen = choose_samples(index, 24)
    assert len({s.label for s in chosen}) == 24
    assert [s.label for s in chosen] == sorted(s.label for s in chosen)
    assert choose_samples(index.with_samples(index.samples[::-1]), 24) == chosen
    few = choose_samples(index_of([10, 1, 10]), 12)
    assert [sum(s.label == label for s in few) for label in range(3)] == [5, 1, 6]
    assert len(set(few)) == 12


def test_a_small_data_set_is_shown_whole() -> None:
    index = index_of([2, 1])
    assert sorted(s.name for s in choose_samples(index, 24)) == ["0/0", "0/1", "1/0"]


def test_boxes_are_drawn_where_they_are(tmp_path: Path) -> None:
    index = index_of([1], tmp_path)
    Image.new("RGB", (80, 40), "black").save(index.samples[0].path)
    out = draw_contact_sheet(index, tmp_path / "sheet.png")
    tile = np.asarray(Image.open(out))[HEADER : HEADER + TILE, GAP : GAP + TILE].astype(int)
    red = np.abs(tile - ImageColor.getrgb(BOX_COLOUR)).sum(-1) < 60
    ys, xs = np.nonzero(red)
    # 80 x 40 fills the tile's width: scale TILE / 80, and a quarter of the tile above it is empty.
    scale = TILE / 80
    expected = (20 * scale, TILE / 4 + 10 * scale, 60 * scale, TILE / 4 + 30 * scale)
    np.testing.assert_allclose((xs.min(), ys.min(), xs.max() + 1, ys.max() + 1), expected, atol=1.5)


def test_an_unreadable_image_has_a_tile_that_says_so(tmp_path: Path) -> None:
    assert draw_contact_sheet(index_of([2], tmp_path), tmp_path / "sheet.png").is_file()


def test_nothing_to_draw_and_nowhere_to_write(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no images to draw"):
        draw_contact_sheet(index_of([]), tmp_path / "sheet.png")
    with pytest.raises(RunFolderError, match="could not be written"):
        draw_contact_sheet(index_of([1]), tmp_path)
