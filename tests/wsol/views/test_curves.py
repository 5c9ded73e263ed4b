"""The curves of a training run: labels from the table of figures, a whole file or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from wsol.errors import RunFolderError
from wsol.scoring.metrics import metrics
from wsol.views.curves import draw_curves, panels

HISTORY = [{"epoch": 1, "loss": 2.0, "accuracy": 0.5, "val_top1_loc": 0.25}, {"epoch": 2, "loss": 1.0}]


def test_figures_are_called_as_everywhere() -> None:
    columns, _ = panels()["localization, validation (%)"]
    assert columns == {f"val_{key}": metrics()[key].short for key in ("gt_known_loc", "top1_loc")}


def test_a_picture_or_one_line(tmp_path: Path) -> None:
    draw_curves(HISTORY, tmp_path / "curves.png", "a run")
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.width > 3 * 300, "loss, classification, localization"
    with pytest.raises(RunFolderError, match="could not be written"):
        draw_curves(HISTORY, tmp_path / "missing" / "curves.png")
    assert [p.name for p in tmp_path.iterdir()] == ["curves.png"]
