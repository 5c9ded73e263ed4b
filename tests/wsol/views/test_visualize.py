"""Pictures of evaluated images: the right ones, with boxes and words where they belong, runs side by side."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.helpers.evaluated_runs import CONSTANT, HELD_OUT
from wsol.class_names import display_name, display_names
from wsol.cli import main
from wsol.drawing.colours import PREDICTED, TRUTH
from wsol.drawing.overlay import Marked, PictureFrame
from wsol.errors import ConfigError, DataError
from wsol.records import Box
from wsol.run import Run
from wsol.scoring.protocols import find_protocols
from wsol.views.pick import pick_rows
from wsol.views.picked import draw_picked
from wsol.views.side_by_side import TOP, measure

OVERLAP = np.array([0.9, 0.1, 0.5, 0.7, 0.3, 0.2])
SCORE = np.array([0.5, 0.9, 0.6, 0.7, 0.8, 1.0])
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
    assert pick_rows(how, 3, OVERLAP, SCORE, PREDICTED_LABELS, LABELS, CLASSES) == rows


def test_random_is_the_same_at_every_call_and_reads_no_broken_image() -> None:
    one, two = (pick_rows("random", 9, OVERLAP, SCORE, PREDICTED_LABELS, LABELS, CLASSES) for _ in range(2))
    assert one == two
    assert sorted(one) == [0, 1, 2, 3, 4]


def test_an_unknown_pick_names_the_near_ones() -> None:
    with pytest.raises(ConfigError, match="did you mean 'worst'"):
        pick_rows("wrst", 3, OVERLAP, SCORE, PREDICTED_LABELS, LABELS, CLASSES)


def test_names_for_people() -> None:
    assert display_name("001.Black_footed_Albatross") == "Black footed Albatross"
    assert display_name("12.") == "12."
    assert display_names(["1.a", "2.a", "3.b"]) == ["1.a", "2.a", "b"]


def test_pictures_show_both_boxes_where_they_are(evaluated: Path) -> None:
    run, protocol = Run(evaluated), find_protocols("gpca")[0]
    drawn = list(draw_picked([run], protocol, "worst", 5))
    (measured,) = measure([run], protocol)
    _, judged = measured.judge([HELD_OUT])
    names = measured.predictions.names
    readable = [row for row in range(len(names)) if not measured.predictions.unreadable(row)]
    order = sorted(readable, key=lambda row: judged.overlap[row, 0])[:5]
    assert [image.name for image in drawn] == [names[row] for row in order]
    for row, image in zip(order, drawn, strict=True):
        pixels = np.asarray(image.pictures[0])
        frame = PictureFrame.around(*measured.predictions.size(row))
        assert pixels.shape[:2] == frame.size[::-1]
        marks = [(measured.boxes_in_pixels(judged, row)[0], PREDICTED, True)]
        marks += [(box, TRUTH, False) for box in measured.predictions.truths(row)]
        for box, colour, inside in marks:
            x0, y0, _, y1 = frame.rect(Box(*box))
            edge = pixels[y0:y1, x0 if inside else x0 - 1]
            # labels and other boxes may hide a part of the line
            assert (edge == colour).all(-1).mean() >= 0.3


def test_the_label_says_class_score_iou_and_outcome(evaluated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wsol.views import picked

    said: list[str] = []

    def draw(*_: object, predicted: Sequence[Marked], **__: object) -> Image.Image:
        said.extend(mark.label for mark in predicted)
        return Image.new("RGB", (9, 9))

    monkeypatch.setattr(picked, "draw_overlay", draw)
    run = Run(evaluated)
    for image in draw_picked([run], find_protocols("gpca")[0], "random", 99):
        (side,) = image.sides
        named = f"{display_names(run.classes)[side.predicted]} {side.score:.2f}"
        overlap = f" · IoU {side.overlap:.2f}" if image.name != without_boxes(run) else ""
        assert said[-1] == f"{named}{overlap} · {side.outcome}"


def without_boxes(run: Run) -> str:
    predictions = run.predictions()
    return next(n for row, n in enumerate(predictions.names) if len(predictions.truths(row)) == 0)


@pytest.mark.parametrize(("name", "level"), [("gpca", 0.0), ("wsoleval-v1", 0.0)])
def test_the_heat_is_the_map_that_is_cut(evaluated: Path, name: str, level: float) -> None:
    """A constant map has no heat: normalising it by itself would paint noise."""
    (measured,) = measure([Run(evaluated)], find_protocols(name)[0])
    assert np.unique(measured.heat(CONSTANT, TOP)).tolist() == [level]
    raw = measured.predictions.maps[0, TOP].astype(np.float64)
    expected = (raw - raw.min()) / (raw.max() - raw.min())
    np.testing.assert_allclose(measured.heat(0, TOP), expected, atol=1e-6)


def test_each_run_is_cut_at_its_own_threshold(evaluated: Path, tmp_path: Path) -> None:
    other = shutil.copytree(evaluated, tmp_path / "other")
    scores = other / "scores.json"
    scores.write_text(scores.read_text().replace(f'"threshold": {HELD_OUT}', '"threshold": 0.62'))
    runs, protocol = [Run(evaluated), Run(other)], find_protocols("gpca")[0]
    image = next(iter(draw_picked(runs, protocol, "best", 1)))
    assert image.thresholds == [HELD_OUT, 0.62]
    assert [side.run for side in image.sides] == ["made", "other"]
    assert len(image.pictures) == len(image.tiles) == 2
    assert image._repr_png_().startswith(b"\x89PNG")
    image = next(iter(draw_picked(runs, protocol, "best", 1, threshold=0.5)))
    assert image.thresholds == [0.5, 0.5]


def test_what_cannot_be_drawn_is_said(evaluated: Path, tmp_path: Path) -> None:
    run, protocol = Run(evaluated), find_protocols("gpca")[0]
    for settings, message in (
        ({"how": "ostrich"}, "neither an order nor a class"),
        ({"num": 0}, "num 0"),
        ({"threshold": 1.0}, "outside 0 to 1"),
    ):
        with pytest.raises(ConfigError, match=message):
            draw_picked([run], protocol, **settings)
    with pytest.raises(DataError, match=r"no such image file.*--data"):
        list(draw_picked([Run(evaluated, data=tmp_path)], protocol))


def test_the_command_writes_a_grid_and_single_pictures(evaluated: Path, tmp_path: Path) -> None:
    other = shutil.copytree(evaluated, tmp_path / "other")
    out = tmp_path / "out"
    command = ["visualize", str(evaluated), "--compare", str(other), "--pick", "random", "--num", "3"]
    assert main([*command, "--out", str(out)]) == 0
    with Image.open(out / "grid.png") as grid:
        assert grid.width > 2 * 400
        assert grid.height > 3 * 150
    assert len(list(out.iterdir())) == 4
