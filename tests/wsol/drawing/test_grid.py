"""Sheets of pictures: each picture whole, in its cell, below its heading."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from wsol.drawing.grid import draw_grid, in_rows


def test_every_picture_is_on_the_sheet_whole_and_in_order() -> None:
    colours = [(200, 0, 0), (0, 200, 0), (0, 0, 200), (200, 200, 0), (0, 200, 200)]
    tiles = [Image.new("RGB", (60 + 10 * i, 50 + 5 * i), c) for i, c in enumerate(colours)]
    sheet = np.asarray(
        draw_grid(
            [tiles[:2], tiles[2:4], tiles[4:]],
            columns=["CAM", "GPCA"],
            captions=["a", "b", "c"],
            title="worst",
        )
    )
    places = []
    for tile, colour in zip(tiles, colours, strict=True):
        y, x = np.nonzero((sheet == colour).all(-1))
        assert len(y) == tile.width * tile.height
        places.append((int(y.min()), int(x.min())))
    assert places[0][1] < places[1][1]
    assert places[0][0] < places[2][0] < places[4][0]


@pytest.mark.parametrize(
    ("num", "lengths"),
    [(0, []), (1, [1]), (2, [2]), (5, [5]), (7, [4, 3]), (8, [4, 4]), (12, [4, 4, 4]), (24, [6, 6, 6, 6])],
)
def test_pictures_fill_their_rows(num: int, lengths: list[int]) -> None:
    tile = Image.new("RGB", (4, 3))
    assert [len(row) for row in in_rows([tile] * num)] == lengths


def test_a_grid_of_nothing_is_a_sheet() -> None:
    assert draw_grid([], title="none").height > 0
