"""What `wsol discover` wrote, read again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wsol.errors import DataError
from wsol.localization.discovered import DiscoveredFolder, mask_path


def write(folder: Path, mask: np.ndarray) -> DiscoveredFolder:
    path = mask_path(folder, "a/b.jpg")
    path.parent.mkdir(parents=True)
    Image.fromarray(mask).save(path)
    (folder / "directions.json").write_text("{}")
    (folder / "boxes.json").write_text(json.dumps({"photos": "holiday", "size": 448, "images": []}))
    assert DiscoveredFolder.is_one(folder)
    return DiscoveredFolder.open(folder)


def test_a_mask_is_the_share_of_each_cell(tmp_path: Path) -> None:
    mask = np.zeros((40, 60), dtype=np.uint8)
    mask[:, :45] = 255
    found = write(tmp_path, mask)
    assert (found.photos, found.size) == (Path("holiday"), 448)
    np.testing.assert_allclose(found.mask("a/b.jpg", 2), [[1, 0.5], [1, 0.5]])
    assert not found.mask("a/other.jpg", 4).any()


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    found = write(tmp_path, np.zeros((4, 4), dtype=np.uint8))
    mask_path(tmp_path, "a/b.jpg").write_text("no picture")
    with pytest.raises(DataError, match=r"b\.jpg\.png: this mask cannot be read"):
        found.mask("a/b.jpg", 4)
    for text in ("no JSON", "[]", "{}", '{"photos": "x", "size": "large", "images": []}'):
        (tmp_path / "boxes.json").write_text(text)
        with pytest.raises(DataError, match="not what `wsol discover` writes"):
            DiscoveredFolder.open(tmp_path)
    assert not DiscoveredFolder.is_one(tmp_path / "missing")
