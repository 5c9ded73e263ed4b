"""The report in a real browser: no error, the slider's boxes are Python's, the gallery does as it is told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.browser import click, set_value, settle, show_gallery
from tests.helpers.evaluated_runs import UNREADABLE, judged_by_hand, make_evaluated_run
from wsol.localization.cutter import MapCutter
from wsol.localization.predictions import Predictions
from wsol.run import Run
from wsol.scoring.protocols import find_protocols
from wsol.views.page import render
from wsol.views.report import build_page

PROTOCOL = find_protocols("wsoleval-v2")[0]  # whose IoU is not always that of the drawn box

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(make_evaluated_run(tmp_path_factory.mktemp("report") / "bird run", boxes=2, seed=1))


@pytest.fixture(scope="module")
def predictions(run: Run) -> Predictions:
    return run.evaluated(PROTOCOL)[1]


@pytest.fixture(scope="module")
def address(run: Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(build_page([run], PROTOCOL)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser: Any, address: str) -> Any:
    """The report of the run, opened afresh; no test may leave an error on the console."""
    browser.set_window_size(1280, 1000)
    browser.get(address)
    show_gallery(browser)
    yield browser
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def shown_names(browser: Any) -> list[str]:
    names: list[str] = browser.execute_script(
        "const d = JSON.parse(document.getElementById('data').textContent);"
        "return [...document.querySelectorAll('#grid > li')].map(e => d.images.name[e.dataset.index])"
    )
    return names


def drawn_boxes(browser: Any) -> dict[str, list[float]]:
    """The blue rectangle of every card that is filled, by the image's name."""
    boxes: dict[str, list[float]] = browser.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('#grid svg')].map(s => {"
        "const r = s.querySelector('.predicted'), v = k => parseFloat(r.getAttribute(k));"
        "const box = [v('x'), v('y'), v('x') + v('width'), v('y') + v('height')];"
        "return [s.getAttribute('aria-label'), box]}))"
    )
    return boxes


def box_by_python(predictions: Predictions, row: int, threshold: float, which: int) -> list[float]:
    """The box of one image at one threshold, found anew from its raw map."""
    size, extraction = predictions.size(row), PROTOCOL.extraction
    found = MapCutter(predictions.maps[row, which], size, predictions.view).find(
        extraction, np.array([threshold])
    )
    return list(extraction.to_original(predictions.view, found.single[found.level[0]], size))


@pytest.mark.parametrize("which", ["top", "true"])
@pytest.mark.parametrize("index", [0, 20, 47, 83, 99])
def test_the_slider_puts_boxes_where_python_puts_them(
    page: Any, predictions: Predictions, index: int, which: str
) -> None:
    set_value(page, "which", which)
    set_value(page, "threshold", index)
    threshold = float(page.find_element("id", "threshold-value").text)
    drawn = drawn_boxes(page)
    assert len(drawn) == len(predictions)
    for row, name in enumerate(predictions.names):
        if row != UNREADABLE:
            expected = box_by_python(predictions, row, threshold, 1 if which == "top" else 0)
            np.testing.assert_allclose(drawn[name], expected, atol=max(predictions.size(row)) / 65535)


def test_the_headline_follows_the_slider(page: Any, run: Run, predictions: Predictions) -> None:
    num = len(predictions)
    for index in (5, 60):
        set_value(page, "threshold", index)
        threshold = float(page.find_element("id", "threshold-value").text)
        images = [judged_by_hand(PROTOCOL, predictions, row, threshold) for row in range(num)]
        text = page.find_element("id", "live").text
        assert f"GT-known {100 * sum(i.known for i in images) / num:.1f}" in text
        assert f"top-1 loc {100 * sum(i.top for i in images) / num:.1f}" in text
    click(page, "reset")
    figure = run.scores[PROTOCOL.name]["gt_known_loc"]
    assert f"GT-known {figure:.1f}" in page.find_element("id", "live").text


@pytest.mark.parametrize(("which", "map_index"), [("top", 1), ("true", 0)])
def test_green_marks_are_hits(page: Any, predictions: Predictions, which: str, map_index: int) -> None:
    """By the map of the predicted class those of top-1, by that of the true class those of GT-known."""
    set_value(page, "which", which)
    threshold = float(page.find_element("id", "threshold-value").text)
    marks = page.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('#grid .panel')].map(p => ["
        "p.querySelector('svg').getAttribute('aria-label'),"
        "[p.querySelector('b').className, p.querySelector('b').textContent]]))"
    )
    for row, name in enumerate(predictions.names):
        image = judged_by_hand(PROTOCOL, predictions, row, threshold, map_index)
        hit = image.top if which == "top" else image.known
        assert marks[name][0] == ("hit" if hit else "miss")
        if len(predictions.truths(row)):
            assert float(marks[name][1].removeprefix("IoU ")) == pytest.approx(image.overlap, abs=0.0051)


def test_sorting_orders_the_gallery(page: Any, run: Run, predictions: Predictions) -> None:
    start = run.scores[PROTOCOL.name].threshold
    rows = range(len(predictions))
    overlap = {
        predictions.names[row]: judged_by_hand(PROTOCOL, predictions, row, start, 1).overlap for row in rows
    }
    assert list(overlap.values()) != sorted(overlap.values())
    up = shown_names(page)
    assert np.all(np.diff([overlap[n] for n in up]) >= -1e-4)
    set_value(page, "sort", "iou-down")
    assert np.all(np.diff([overlap[n] for n in shown_names(page)]) <= 1e-4)
    set_value(page, "sort", "name")
    assert shown_names(page) == sorted(overlap)
    set_value(page, "sort", "score-down")
    score = dict(zip(predictions.names, predictions.probabilities.max(axis=1).tolist(), strict=True))
    assert np.all(np.diff([score[n] for n in shown_names(page)]) <= 1e-4)


def test_filters_choose_what_is_shown(page: Any, predictions: Predictions) -> None:
    names, labels = predictions.names, predictions.labels.tolist()
    set_value(page, "class", 2)
    assert sorted(shown_names(page)) == sorted(n for n, c in zip(names, labels, strict=True) if c == 2)
    set_value(page, "class", "")
    assert predictions.ranks is not None
    ranks = predictions.ranks.tolist()
    wrong = [n for row, n in enumerate(names) if ranks[row] > 0 and row != UNREADABLE]
    assert 0 < len(wrong) < len(names)
    set_value(page, "kind", 1)
    assert sorted(shown_names(page)) == sorted(wrong)
    assert page.find_element("id", "count").text == f"{len(wrong)} of {len(names)} images"
    set_value(page, "kind", "")
    part = names[5].rpartition("/")[2]
    set_value(page, "find", part.upper())
    assert shown_names(page) == [names[5]]
    set_value(page, "find", "no such bird")
    assert shown_names(page) == []
    assert page.find_element("id", "none").is_displayed()


def test_everything_is_reached_by_keyboard(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    def press(key: str) -> None:
        page.switch_to.active_element.send_keys(key)
        settle(page)

    slider = page.find_element("id", "threshold")
    before = page.find_element("id", "threshold-value").text
    slider.send_keys(Keys.ARROW_RIGHT)
    settle(page)
    assert float(page.find_element("id", "threshold-value").text) > float(before)
    order = shown_names(page)
    page.execute_script("document.querySelector(\"#grid .shot[tabindex='0']\").focus()")
    press(Keys.ARROW_RIGHT)
    press(Keys.ENTER)
    dialog = page.find_element("id", "large")
    assert dialog.is_displayed()
    assert page.find_element("id", "large-name").text == order[1]
    press(Keys.ARROW_RIGHT)
    press(Keys.ARROW_RIGHT)
    assert page.find_element("id", "large-name").text == order[3]
    page.execute_script("document.getElementById('large-threshold').focus()")
    threshold = float(page.find_element("id", "large-value").text)
    press(Keys.ARROW_RIGHT)
    assert page.find_element("id", "large-name").text == order[3]
    assert float(page.find_element("id", "large-value").text) == pytest.approx(threshold + 0.01)
    press(Keys.ESCAPE)
    assert not dialog.is_displayed()
    focused = page.execute_script("return document.activeElement.closest('li').dataset.index")
    data = json.loads(page.execute_script("return document.getElementById('data').textContent"))
    assert data["images"]["name"][int(focused)] == order[3]


def test_heat_can_be_switched_off(page: Any) -> None:
    assert page.execute_script("return document.querySelectorAll('#grid .heat').length") > 0
    click(page, "heat")
    assert page.execute_script("return document.querySelectorAll('#grid .heat').length") == 0


def test_the_class_table_sorts(page: Any) -> None:
    def column() -> list[str]:
        texts: list[str] = page.execute_script(
            "return [...document.querySelectorAll('#classes tbody tr')].map(r => r.cells[0].textContent)"
        )
        return texts

    page.execute_script("document.querySelector('#classes th button').click()")
    assert column() == sorted(column())
    page.execute_script("document.querySelector('#classes th button').click()")
    assert column() == sorted(column(), reverse=True)


@pytest.mark.parametrize("width", [1280, 500, 360])
def test_nothing_is_wider_than_the_window(page: Any, width: int) -> None:
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    settle(page)
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_dark_mode_changes_the_colours(page: Any) -> None:
    def ground(scheme: str) -> str:
        page.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        colour: str = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        return colour

    light, dark = ground("light"), ground("dark")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert light == "rgb(255, 255, 255)"
    assert dark != light


def test_the_page_loads_nothing(page: Any) -> None:
    loaded = page.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []


def test_two_runs_stand_side_by_side(browser: Any, run: Run, tmp_path: Path) -> None:
    other = Run(shutil.copytree(run.path, tmp_path / "<i>other"))
    out = tmp_path / "both.html"
    out.write_text(render(build_page([run, other], PROTOCOL)), encoding="utf-8")
    browser.get(out.as_uri())
    show_gallery(browser)
    assert browser.execute_script("return document.querySelector('#grid .panels').children.length") == 2
    assert "<i>other" in browser.find_element("id", "live").text
    assert browser.find_element("id", "by").is_displayed()
    assert [e for e in browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")] == []
