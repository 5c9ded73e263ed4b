"""`wsol visualize`: the right images, one PNG each, runs side by side."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wsol.class_names import display_name, display_names
from wsol.cli import main
from wsol.drawing.colours import PREDICTED, TRUTH
from wsol.drawing.overlay import Frame
from wsol.errors import ConfigError
from wsol.records import Box
from wsol.views.pick import pick_rows
from wsol.views.results import open_results

OVERLAP = np.array([0.9, 0.1, 0.5, 0.7, 0.3, 0.2])
SURETY = np.array([0.5, 0.9, 0.6, 0.7, 0.8, 1.0])
LABELS = np.array([0, 0, 1, 1, 2, 2])
PREDICTED_LABELS = np.array([0, 1, 1, 0, 2, -1])  # the last could not be read
CLASSES = ["001.Gull", "002.Blue_Jay", "003.Crow"]


@pytest.mark.parametrize(
    ("how", "rows"),
    [
        ("worst", [1, 4, 2]),
        ("best", [0, 3, 2]),
        ("wrong-class", [1, 3]),
        ("002.Blue_Jay", [2, 3]),
        ("blue jay", [2, 3]),
        ("crow", [4]),
    ],
)
def test_picking(how: str, rows: list[int]) -> None:
    assert pick_rows(how, 3, OVERLAP, SURETY, PREDICTED_LABELS, LABELS, CLASSES) == rows


def test_random_is_the_same_at_every_call_and_reads_no_broken_image() -> None:
    one, two = (pick_rows("random", 9, OVERLAP, SURETY, PREDICTED_LABELS, LABELS, CLASSES) for _ in range(2))
    assert one == two
    assert sorted(one) == [0, 1, 2, 3, 4]


def test_an_unknown_pick_names_the_near_ones() -> None:
    with pytest.raises(ConfigError, match="did you mean 'worst'"):
        pick_rows("wrst", 3, OVERLAP, SURETY, PREDICTED_LABELS, LABELS, CLASSES)


def test_names_for_people() -> None:
    assert display_name("001.Black_footed_Albatross") == "Black footed Albatross"
    assert display_name("12.") == "12."
    assert display_names(["1.a", "2.a", "3.b"]) == ["1.a", "2.a", "b"]


def test_single_pictures_show_both_boxes_where_they_are(evaluated: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["visualize", str(evaluated), "--pick", "worst", "--num", "5", "--out", str(out)]) == 0
    assert (out / "grid.png").is_file()
    pictures = sorted(p for p in out.iterdir() if p.name != "grid.png")
    assert len(pictures) == 5
    results = open_results(evaluated)
    _, found = results.find(np.array([results.threshold]))
    order = np.argsort(found.single[:, 0], kind="stable")[:5].tolist()
    for row, path in zip(order, pictures, strict=True):
        assert Path(results.predictions.names[row]).stem in path.name
        pixels = np.asarray(Image.open(path).convert("RGB"))
        frame = Frame.around(*results.predictions.size(row))
        assert pixels.shape[:2] == frame.size[::-1]
        for box, colour, inside in (
            (results.in_pixels(row, found.boxes[row])[0], PREDICTED, True),
            (results.predictions.truths(row)[0], TRUTH, False),
        ):
            x0, _, _, y1 = frame.rect(Box(*box))
            column = x0 if inside else x0 - 1
            # the lower part of the left edge: labels stand at the top
            edge = pixels[y1 - 12 : y1 - 4, column]
            assert (edge == colour).all(-1).mean() >= 0.5


def test_several_runs_stand_in_columns(evaluated: Path, tmp_path: Path) -> None:
    other = shutil.copytree(evaluated, tmp_path / "other")
    out = tmp_path / "out"
    command = ["visualize", str(evaluated), "--compare", str(other), "--pick", "random", "--num", "3"]
    assert main([*command, "--out", str(out)]) == 0
    with Image.open(out / "grid.png") as grid:
        assert grid.width > 2 * 400
        assert grid.height > 3 * 150
    assert len(list(out.iterdir())) == 4


def test_what_cannot_be_drawn_is_said(
    evaluated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").touch()
    for extra, message in (
        (["--pick", "ostrich"], "neither an order nor a class"),
        (["--num", "0"], "--num 0"),
        (["--threshold", "1"], "outside 0 to 1"),
        ([], "not empty"),
    ):
        assert main(["visualize", str(evaluated), *extra, "--out", str(tmp_path)]) == 2
        assert message in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
