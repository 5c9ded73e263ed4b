"""The report's parts: what is packed is what was found, and no name can break the page."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import wsol
from tests.helpers.evaluated_runs import UNREADABLE
from wsol.errors import ConfigError, DataError, RunFolderError
from wsol.registry import METRICS
from wsol.run import Run
from wsol.scoring.error_kinds import OUTCOMES
from wsol.scoring.image import ImageScorer
from wsol.scoring.metrics import Metric, register_metric
from wsol.scoring.protocols import find_protocols
from wsol.views.gallery_pictures import BESIDE, INSIDE, LARGE, THUMBNAIL, choose_size, data_uris, encode
from wsol.views.html_file import safe_json
from wsol.views.page import ClassRow, ConfusionSection, MaskSection, Page, PairRow, RunFacts, render
from wsol.views.report import LARGEST_FILE, Assets, build_page, gallery_rows, threshold_grid
from wsol.views.side_by_side import measure, run_names

NASTY = "</script><script>alert(1)</script><!-- \"'&<b>"
GPCA = find_protocols("gpca")[0]


def unpack(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


def test_what_is_packed_has_the_right_shape(evaluated: Path) -> None:
    run = Run(evaluated)
    data = build_page([run], GPCA).gallery
    num, steps, side = len(run.predictions()), len(data["thresholds"]), data["runs"][0]
    assert steps == 100
    assert data["thresholds"][data["start"]] == run.scores["gpca"].threshold
    shares = unpack(side["top"]["boxes"], "<u2").reshape(num, steps, 4) / 65535
    assert (shares[..., 2:] >= shares[..., :2]).all()
    heat = unpack(side["top"]["heat"], "u1").reshape(num, *side["shape"])
    assert sorted(set(heat.reshape(num, -1).max(axis=1).tolist())) == [0, 255], "0 where the map is constant"
    assert data["kinds"] == list(OUTCOMES)
    assert set(unpack(side["kind"], "u1").reshape(num, steps)[UNREADABLE]) == {
        OUTCOMES.index("unreadable image")
    }
    assert side["predicted"][UNREADABLE] == -1


def test_boxes_of_both_maps_are_those_of_one_image_at_a_time(evaluated: Path) -> None:
    (measured,) = measure([Run(evaluated)], GPCA)
    predictions = measured.predictions
    thresholds = threshold_grid([0.2])
    assert 0 < (predictions.predicted == predictions.labels).sum() < len(predictions)
    for which, judged in enumerate(measured.judge(thresholds)):
        for row in range(len(predictions)):
            if predictions.unreadable(row):
                continue
            raw = predictions.maps[row, which].astype(np.float64)
            scorer = ImageScorer(raw, predictions.truths(row), predictions.size(row), predictions.view)
            wanted = scorer.find(GPCA, thresholds)
            np.testing.assert_array_equal(judged.found.boxes[row], wanted.boxes)
            np.testing.assert_array_equal(judged.found.single[row], wanted.single)


def test_a_metric_of_a_plugin_is_on_the_page(evaluated: Path, tmp_path: Path) -> None:
    """Registered from outside: in cards, table and live figures, with its own labels."""
    before = dict(METRICS.entries())
    register_metric(
        Metric(
            "half_loc",
            "half loc",
            "localization by halves",
            "half of a GT-known hit",
            lambda judged, at: judged.known()[:, at] / 2,
            higher_is_better=False,
        )
    )
    try:
        run = shutil.copytree(evaluated, tmp_path / "plugin")
        record = json.loads((run / "scores.json").read_text())
        record["protocols"]["gpca"]["half_loc"] = 41.5
        (run / "scores.json").write_text(json.dumps(record))
        page = build_page([Run(run), Run(evaluated)], GPCA)
        assert [card.value for card in page.runs[0].cards if card.label == "localization by halves"] == [
            "41.5"
        ]
        column = page.figures.index(("half loc", "half of a GT-known hit"))
        assert page.result_rows[0].cells[column].text == "41.5"
        live = {figure["label"]: figure["values"] for figure in page.gallery["runs"][0]["live"]}
        halves = [float(value) for value in live["half loc"]]
        np.testing.assert_allclose(halves, [float(v) / 2 for v in live["GT-known"]], atol=0.1)
    finally:
        METRICS.restore(before)


def test_the_best_of_several_runs_is_marked(evaluated: Path, tmp_path: Path) -> None:
    other = shutil.copytree(evaluated, tmp_path / "other")
    record = json.loads((other / "scores.json").read_text())
    record["protocols"]["gpca"] |= {"top1_loc": 99.5, "gt_known_loc": 0.5}
    (other / "scores.json").write_text(json.dumps(record))
    page = build_page([Run(evaluated), Run(other)], GPCA)
    top, known = (page.figures.index(f) for f in page.figures if f[0] in ("top-1 loc", "GT-known"))
    rows = [row for row in page.result_rows if row.name in ("made", "other")]
    assert [row.cells[top].best for row in rows] == [False, True]
    assert [row.cells[known].best for row in rows] == [True, False]


@given(st.lists(st.floats(0, 0.999), max_size=5))
def test_the_grid_holds_every_reported_threshold(exact: list[float]) -> None:
    grid = threshold_grid(exact)
    assert len(grid) == 100
    assert set(exact) <= set(grid.tolist())
    assert (np.diff(grid) > 0).all()


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
        "runs": [RunFacts(NASTY, [], [(NASTY, NASTY)], NASTY)],
        "figures": [(NASTY, NASTY)],
        "result_rows": [],
        "results_note": NASTY,
        "gallery": gallery,
        "with_classes": True,
        "gallery_note": NASTY,
        "class_columns": [(NASTY, False)],
        "class_rows": [ClassRow(0, NASTY, [NASTY])],
        "confusions": ConfusionSection(
            NASTY, [NASTY], [PairRow((0, 1), NASTY, [NASTY], [NASTY], [0])], NASTY
        ),
        "masks": MaskSection([(NASTY, [NASTY])], [], [NASTY], [[NASTY]], NASTY),
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
    assert page.tags.count("script") == 4, "the data, and three scripts of the page"
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


def test_a_page_of_a_real_run_is_whole(evaluated: Path) -> None:
    page = Collector()
    page.feed(render(build_page([Run(evaluated)], GPCA, num_images=3)))
    assert len(json.loads(page.scripts[0])["images"]["name"]) == 3
    assert page.tags.count("section") == 8, (
        "results, curves, a view of a class, gallery, classes, confusions, attention, configuration"
    )


def test_runs_that_cannot_be_shown_are_named(evaluated: Path, tmp_path: Path) -> None:
    def copy(name: str) -> Path:
        return shutil.copytree(evaluated, tmp_path / name)

    bare, damaged, fewer, mixed, old = map(copy, ("bare", "damaged", "fewer", "mixed", "old"))
    (bare / "scores.json").unlink()
    (damaged / "scores.json").write_text("{")
    meta = fewer / "predictions" / "test-resize" / "meta.json"
    header = json.loads(meta.read_text())
    header["names"][0] = "another.jpg"
    meta.write_text(json.dumps(header))
    scores = mixed / "scores.json"
    scores.write_text(scores.read_text().replace("best.ckpt, epoch 1", "last.ckpt, epoch 2"))
    scores = old / "scores.json"
    scores.write_text(scores.read_text().replace('"version": 1', '"version": 0'))
    for paths, error, message in (
        ([bare], RunFolderError, "not evaluated yet; run `wsol evaluate"),
        ([tmp_path], RunFolderError, "not a run folder"),
        ([damaged], DataError, "scores.json: damaged"),
        ([evaluated, fewer], DataError, "measured on different images"),
        ([mixed], DataError, "not the same checkpoint"),
        ([old], DataError, "version 0 of protocol gpca"),
    ):
        with pytest.raises(error, match=message):
            build_page([Run(path) for path in paths], GPCA)
    with pytest.raises(DataError, match=r"no such image file.*--data"):
        build_page([Run(evaluated, data=tmp_path / "nowhere")], GPCA)
    with pytest.raises(ConfigError, match="images -1"):
        build_page([Run(evaluated)], GPCA, num_images=-1)


def test_an_unreadable_photo_becomes_a_grey_square(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_text("no")
    (uri,) = data_uris([broken], THUMBNAIL)
    assert uri.startswith("data:image/webp;base64,")
    assert len(uri) < 300


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    """Noise, which no encoder can shrink: two large photos and a small one."""
    rng = np.random.default_rng(0)
    paths = []
    for i, (width, height) in enumerate([(1900, 1200), (700, 1400), (90, 60)]):
        paths.append(tmp_path / f"{i}.png")
        Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(paths[-1])
    return paths


def test_pictures_are_shrunk_and_never_enlarged(photos: list[Path]) -> None:
    for size in (*INSIDE, BESIDE):
        sizes = [Image.open(io.BytesIO(encode(path, size))).size for path in photos]
        assert [max(s) for s in sizes] == [size.side, min(size.side, 1400), 90]
        assert sizes[2] == (90, 60)
        assert sizes[0][0] / sizes[0][1] == pytest.approx(1900 / 1200, rel=0.01)


def test_pictures_are_as_large_as_the_budget_allows(photos: list[Path]) -> None:
    def bytes_of(size: Any) -> int:
        return sum(len(uri) for uri in data_uris(photos, size))

    assert choose_size(photos, 1e9) == INSIDE[0]
    assert INSIDE[0].side >= LARGE
    assert choose_size(photos, 0) == THUMBNAIL
    assert choose_size([], 0) == THUMBNAIL
    budget = 1.01 * bytes_of(INSIDE[2])
    chosen = choose_size(photos, budget)
    assert chosen == INSIDE[2]
    assert bytes_of(chosen) <= budget < bytes_of(INSIDE[1])


def test_small_pictures_are_owned_up_to(
    evaluated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--assets" not in build_page([Run(evaluated)], GPCA).gallery_note
    monkeypatch.setattr("wsol.views.report.LARGEST_FILE", 0)
    tight = build_page([Run(evaluated)], GPCA, 3)
    assert "no more than 256 pixels; with `--assets DIR`" in tight.gallery_note


def test_a_report_with_everything_beside_it(evaluated: Path, tmp_path: Path) -> None:
    assets, figures = tmp_path / "large", tmp_path / "figures"
    asked = {"assets": assets, "figures": figures, "formats": ["svg"], "images": 2}
    found = wsol.report(evaluated, out=tmp_path / "r.html", **asked)  # type: ignore[arg-type]
    assert found.assets == assets
    assert len(list(assets.iterdir())) == 2
    assert {p.name for p in figures.iterdir()} == {p.name for p in found.figures}
    assert {"over_thresholds.svg", "over_iou.svg", "mask_values.svg"} <= {p.name for p in found.figures}
    for option in ("assets", "figures"):
        with pytest.raises(RunFolderError, match=f"not empty; choose another --{option} or"):
            wsol.report(evaluated, out=tmp_path / "again.html", **{option: asked[option]})  # type: ignore[arg-type]
    assert not (tmp_path / "again.html").exists()
    with pytest.raises(ConfigError, match="figures are written as png, pdf, svg"):
        wsol.report(evaluated, out=tmp_path / "again.html", figures=tmp_path / "f", formats=["jpg"])
    assert not (tmp_path / "f").exists()


def test_large_pictures_lie_beside_the_page(evaluated: Path, tmp_path: Path) -> None:
    folder = tmp_path / "large & more"
    folder.mkdir()
    page = build_page([Run(evaluated)], GPCA, 3, Assets.beside(tmp_path / "pages" / "report.html", folder))
    images = page.gallery["images"]
    assert len(images["large"]) == len(images["picture"]) == 3
    for address in images["large"]:
        assert address.startswith("../large%20%26%20more/0000")
        assert (tmp_path / unquote(address)[3:]).is_file()
    text = render(page)
    assert "img-src data: &#39;self&#39; file:;" in text
    assert "large &amp; more" in text
    assert build_page([Run(evaluated)], GPCA, 3).gallery["images"]["large"] == []


def test_runs_of_one_name_are_told_apart(evaluated: Path, tmp_path: Path) -> None:
    other = shutil.copytree(evaluated, tmp_path / evaluated.name)
    assert run_names([Run(evaluated), Run(other)]) == [str(evaluated), str(other)]
    assert run_names([Run(evaluated)]) == [evaluated.name]


def test_faults_stand_above_the_figures(evaluated: Path) -> None:
    warnings = build_page([Run(evaluated)], GPCA, num_images=1).warnings
    assert [text.split(":")[1].strip() for text in warnings] == ["unreadable images", "constant maps"]
