"""The report's parts: what is packed is what was found, and no name can break the page."""

from __future__ import annotations

import base64
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from wsol.cli import main
from wsol.config import Data
from wsol.data.index import open_dataset
from wsol.scoring.error_kinds import KINDS
from wsol.scoring.image import ImageScorer
from wsol.views.gallery import thumbnail
from wsol.views.page import Page, RunText, render, safe_json
from wsol.views.report import LARGEST_FILE, build_page, gallery_rows, threshold_grid
from wsol.views.results import OUTCOMES, open_results, open_several

NASTY = "</script><script>alert(1)</script><!-- \"'&<b>"


def unpack(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


def test_packed_numbers_are_those_of_the_scores(evaluated: Path) -> None:
    results = open_results(evaluated)
    data = build_page([results]).gallery
    num, steps = len(results.predictions), len(data["thresholds"])
    assert steps == 100
    run = data["runs"][0]
    at = data["thresholds"].index(results.threshold)
    assert at == data["start"]
    words = unpack(run["true"]["overlap"], "<u2").reshape(num, steps)
    hits = words >> 15
    live = {figure["label"]: figure["values"] for figure in run["live"]}
    assert (
        f"{100 * hits[:, at].mean():.1f}" == live["GT-known"][at] == f"{results.scores['gt_known_loc']:.1f}"
    )
    assert live["Top-1 loc"][at] == f"{results.scores['top1_loc']:.1f}"
    kinds = unpack(run["kind"], "u1").reshape(num, steps)[:, at]
    counts = {name: int((kinds == i).sum()) for i, name in enumerate(OUTCOMES)}
    assert counts == results.scores["errors"]
    shares = unpack(run["top"]["boxes"], "<u2").reshape(num, steps, 4) / 65535
    assert (shares[..., 2:] >= shares[..., :2]).all()
    heat = unpack(run["top"]["heat"], "u1").reshape(num, *run["shape"])
    assert (heat.reshape(num, -1).max(axis=1) == 255).all()
    assert data["kinds"] == [*KINDS, "unreadable image"]


def test_boxes_of_both_maps_are_those_of_one_image_at_a_time(evaluated: Path) -> None:
    results = open_results(evaluated)
    predictions = results.predictions
    thresholds = threshold_grid([0.2])
    assert 0 < (predictions.ranks == 0).sum() < len(predictions)
    for which, found in enumerate(results.find(thresholds)):
        for row in range(len(predictions)):
            raw = predictions.maps[row, which].astype(np.float64)
            scorer = ImageScorer(raw, predictions.truths(row), predictions.size(row), predictions.view)
            wanted = scorer.find(results.protocol, thresholds)
            np.testing.assert_array_equal(found.boxes[row], wanted.boxes)
            np.testing.assert_array_equal(found.single[row], wanted.single)


@given(st.lists(st.floats(0, 0.999), max_size=3))
def test_the_grid_holds_every_reported_threshold(exact: list[float]) -> None:
    grid = threshold_grid(exact[:1])
    assert len(grid) == 100
    assert set(exact[:1]) <= set(grid.tolist())
    assert (np.diff(grid) > 0).all()
    assert len(threshold_grid(exact)) == 100


def test_the_gallery_keeps_the_file_small() -> None:
    np.testing.assert_array_equal(gallery_rows(1157, 1, None), np.arange(1157))
    np.testing.assert_array_equal(gallery_rows(1157, 5, None), np.arange(1157))
    many = gallery_rows(100_000, 3, None)
    assert 1000 < len(many) < LARGEST_FILE / 12_000
    assert many[0] == 0
    assert many[-1] == 99_999
    assert len(gallery_rows(50, 1, 7)) == 7
    assert len(gallery_rows(50, 1, 0)) == 0


def nasty_page(**changes: Any) -> Page:
    gallery = {"thresholds": [0.1], "images": {"name": [NASTY]}, "classes": [NASTY]}
    values: dict[str, Any] = {
        "title": NASTY,
        "facts": [NASTY],
        "runs": [RunText(NASTY, [], [(NASTY, NASTY)], NASTY)],
        "metric_labels": [NASTY],
        "result_rows": [],
        "results_note": NASTY,
        "gallery": gallery,
        "gallery_note": NASTY,
        "class_columns": [(NASTY, False)],
        "class_rows": [[NASTY]],
        "warnings": [NASTY],
    }
    return Page(**{**values, **changes})


class Collector(HTMLParser):
    """The tags of a page and the text inside its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert name not in ("onclick", "onload", "onerror", "style")
            if name in ("src", "href") and value is not None:
                assert value.startswith(("#", "data:")), value
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.scripts[-1] += data


def test_names_are_escaped_everywhere() -> None:
    text = render(nasty_page())
    page = Collector()
    page.feed(text)
    assert page.tags.count("script") == 2
    assert "b" not in page.tags
    data = json.loads(page.scripts[0])
    assert data["classes"] == [NASTY]
    assert NASTY not in text


@given(
    st.recursive(
        st.text() | st.integers() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_text_survives_inside_a_script(values: Any) -> None:
    text = str(safe_json(values))
    assert "<" not in text
    assert json.loads(text) == values


def test_the_policy_allows_this_script_and_nothing_else() -> None:
    text = render(nasty_page())
    match = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert match
    policy = match[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_a_file_of_the_users_is_not_replaced(
    evaluated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine.html"
    out.write_text("precious")
    assert main(["report", str(evaluated), "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert main(["report", str(evaluated), "--out", str(out), "--overwrite"]) == 0
    assert out.read_text().startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["mine.html"]


def test_runs_that_cannot_be_shown_are_named(
    se_run: Path, evaluated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = shutil.copytree(evaluated, tmp_path / "damaged")
    (damaged / "scores.json").write_text("{")
    fewer = shutil.copytree(evaluated, tmp_path / "fewer")
    meta = fewer / "predictions" / "test-resize" / "meta.json"
    header = json.loads(meta.read_text())
    header["names"][0] = "another.jpg"
    meta.write_text(json.dumps(header))
    for arguments, message in (
        ([str(se_run)], "not measured yet; run `wsol evaluate"),
        ([str(tmp_path)], "not a run folder"),
        ([str(damaged)], "scores.json: damaged"),
        ([str(evaluated), str(fewer)], "measured on different images"),
        ([str(evaluated), "--protocol", "adl"], "not measured by protocol 'adl'"),
        ([str(evaluated), "--data", str(tmp_path / "nowhere")], "nowhere"),
    ):
        assert main(["report", *arguments, "--out", str(tmp_path / "x.html")]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


def test_an_unreadable_photo_becomes_a_grey_square(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_text("no")
    good = tmp_path / "good.png"
    Image.new("RGB", (900, 300), (250, 10, 10)).save(good)
    for path in (broken, good):
        assert thumbnail(path).startswith("data:image/webp;base64,")
    assert len(thumbnail(broken)) < 300


def test_runs_of_one_name_are_told_apart(evaluated: Path, tmp_path: Path) -> None:
    other = shutil.copytree(evaluated, tmp_path / evaluated.name)
    assert [r.name for r in open_several([evaluated, other])] == [str(evaluated), str(other)]
    assert [r.name for r in open_several([evaluated])] == [evaluated.name]


def test_an_image_that_turned_unreadable_stays_in_the_report(
    birds: Path, se_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = shutil.copytree(birds, tmp_path / "birds")
    run = shutil.copytree(se_run, tmp_path / "run")
    broken = open_dataset(Data.of("cub", root=data)).split("test")[2]
    broken.path.write_bytes(b"no picture")
    assert main(["evaluate", str(run), "--data", str(data), "--device", "cpu"]) == 0
    assert main(["report", str(run), "--data", str(data)]) == 0
    assert main(["visualize", str(run), "--data", str(data), "--num", "99"]) == 0
    assert "15 images" in capsys.readouterr().out
    page = Collector()
    page.feed((run / "report.html").read_text())
    gallery = json.loads(page.scripts[0])
    row = gallery["images"]["name"].index(broken.name)
    assert gallery["runs"][0]["predicted"][row] == -1
    kinds = unpack(gallery["runs"][0]["kind"], "u1").reshape(-1, 100)
    assert set(kinds[row].tolist()) == {OUTCOMES.index("unreadable image")}
    assert "unreadable images: 1 (" in (run / "report.html").read_text()
