"""The report in a real browser: no error, the slider's boxes are Python's, the gallery does as it is told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsol.cli import main
from wsol.scoring.frames import to_original
from wsol.scoring.image import ImageScorer
from wsol.views.results import Results, open_results

CONFIG = """\
data: {{name: cub, root: {root}, image_size: 64, resize: 72, workers: 0, val_share: 0.2}}
model: {{backbone: tiny, weights: none, attention: se, head: {{name: cam, channels: 16}}}}
train: {{epochs: 2, batch_size: 8, lr: 0.02, device: cpu}}
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(birds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "run.yaml").write_text(CONFIG.format(root=birds))
    assert main(["train", str(folder / "run.yaml"), "--run-dir", str(folder / "bird run")]) == 0
    assert main(["evaluate", str(folder / "bird run"), "--device", "cpu"]) == 0
    return folder / "bird run"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("selenium", reason="selenium is not installed")
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException

    program = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    driver_path = shutil.which("chromedriver")
    if program is None or driver_path is None:
        pytest.skip("no browser: install chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path_factory.mktemp('browser')}",
        "--window-size=1280,1000",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    except WebDriverException as error:
        pytest.skip(f"the browser does not start: {error.msg}")
    yield driver
    driver.quit()


@pytest.fixture
def page(browser: Any, run: Path) -> Any:
    """The report of the run, opened afresh; no test may leave an error on the console."""
    assert main(["report", str(run)]) == 0
    browser.set_window_size(1280, 1000)
    browser.get((run / "report.html").as_uri())
    browser.execute_script("document.getElementById('bar').scrollIntoView({behavior: 'instant'})")
    settle(browser)
    yield browser
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def settle(browser: Any) -> None:
    """Until two frames have been drawn, and with them what the last event caused."""
    browser.execute_async_script(
        "const done = arguments[0], frame = requestAnimationFrame;"
        "setTimeout(() => frame(() => frame(done)), 200)"
    )


def set_value(browser: Any, name: str, value: object) -> None:
    """What a user's hand does: the control changes and says so."""
    browser.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
        "for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {bubbles: true}))",
        name,
        str(value),
    )
    settle(browser)


def click(browser: Any, name: str) -> None:
    browser.execute_script("document.getElementById(arguments[0]).click()", name)
    settle(browser)


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


def boxes_by_python(results: Results, name: str, threshold: float, which: int) -> tuple[list[float], float]:
    """The box and IoU of one image at one threshold, found anew from its raw map."""
    predictions = results.predictions
    row = predictions.names.index(name)
    size = predictions.size(row)
    raw = predictions.maps[row, which].astype(np.float64)
    scorer = ImageScorer(raw, predictions.truths(row), size, predictions.view)
    found = scorer.find(results.protocol, np.array([threshold]))
    box = to_original(results.protocol, predictions.view, found.boxes[0], size).clip(*size)
    return list(box), float(found.single[0])


@pytest.mark.parametrize("which", ["top", "true"])
@pytest.mark.parametrize("index", [0, 20, 47, 83, 99])
def test_the_slider_puts_boxes_where_python_puts_them(page: Any, run: Path, index: int, which: str) -> None:
    set_value(page, "which", which)
    set_value(page, "threshold", index)
    results = open_results(run)
    threshold = float(page.find_element("id", "threshold-value").text)
    drawn = drawn_boxes(page)
    assert len(drawn) == len(results.predictions)
    for name, box in drawn.items():
        expected, _ = boxes_by_python(results, name, threshold, 1 if which == "top" else 0)
        width, height = results.predictions.size(results.predictions.names.index(name))
        np.testing.assert_allclose(box, expected, atol=max(width, height) / 65535)


def test_the_headline_follows_the_slider(page: Any, run: Path) -> None:
    results = open_results(run)
    num = len(results.predictions)
    for index in (5, 60):
        set_value(page, "threshold", index)
        threshold = float(page.find_element("id", "threshold-value").text)
        hits = [boxes_by_python(results, n, threshold, 0)[1] >= 0.5 for n in results.predictions.names]
        top = [hit and rank == 0 for hit, rank in zip(hits, results.predictions.ranks.tolist(), strict=True)]
        text = page.find_element("id", "live").text
        assert f"GT-known {100 * sum(hits) / num:.1f}" in text
        assert f"Top-1 loc {100 * sum(top) / num:.1f}" in text
    scores = json.loads((run / "scores.json").read_text())["protocols"]["gpca"]
    click(page, "reset")
    assert f"GT-known {scores['gt_known_loc']:.1f}" in page.find_element("id", "live").text


def test_sorting_orders_the_gallery(page: Any, run: Path) -> None:
    results = open_results(run)
    overlap = {n: boxes_by_python(results, n, 0.2, 1)[1] for n in results.predictions.names}
    assert list(overlap.values()) != sorted(overlap.values())
    up = shown_names(page)
    assert np.all(np.diff([overlap[n] for n in up]) >= -1e-4)
    set_value(page, "sort", "iou-down")
    assert np.all(np.diff([overlap[n] for n in shown_names(page)]) <= 1e-4)
    set_value(page, "sort", "name")
    assert shown_names(page) == sorted(overlap)
    set_value(page, "sort", "score-down")
    score = dict(zip(results.predictions.names, results.probabilities.max(axis=1).tolist(), strict=True))
    assert np.all(np.diff([score[n] for n in shown_names(page)]) <= 1e-4)


def test_filters_choose_what_is_shown(page: Any, run: Path) -> None:
    results = open_results(run)
    names, labels = results.predictions.names, results.predictions.labels.tolist()
    set_value(page, "class", 2)
    assert sorted(shown_names(page)) == sorted(n for n, c in zip(names, labels, strict=True) if c == 2)
    set_value(page, "class", "")
    wrong = [n for n, rank in zip(names, results.predictions.ranks.tolist(), strict=True) if rank > 0]
    assert 0 < len(wrong) < len(names)
    set_value(page, "kind", 1)
    assert sorted(shown_names(page)) == sorted(wrong)
    assert page.find_element("id", "count").text == f"{len(wrong)} of {len(names)} images"
    set_value(page, "kind", "")
    part = names[3].rpartition("/")[2]
    set_value(page, "find", part.upper())
    assert shown_names(page) == [names[3]]
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


def test_two_runs_stand_side_by_side(browser: Any, run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "<i>other")
    out = tmp_path / "both.html"
    assert main(["report", str(run), str(other), "--out", str(out)]) == 0
    browser.get(out.as_uri())
    settle(browser)
    assert browser.execute_script("return document.querySelector('#grid .panels').children.length") == 2
    assert "<i>other" in browser.find_element("id", "live").text
    assert browser.find_element("id", "by").is_displayed()
    assert [e for e in browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")] == []
