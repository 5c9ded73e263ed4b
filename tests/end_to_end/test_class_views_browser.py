"""Views of classes, large pictures and the page of a comparison in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.helpers.browser import click, errors, settle
from tests.helpers.evaluated_runs import SIDE, UNREADABLE, make_evaluated_run
from wsol.localization.predictions import Predictions
from wsol.run import Run
from wsol.scoring.protocols import find_protocols
from wsol.views.compare import compare_runs
from wsol.views.page import render
from wsol.views.report import Assets, build_page

PROTOCOL = find_protocols("gpca")[0]
ORIGINAL = 1200  # pixels of one photo; the others are small
LARGE = 9  # its row

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(make_evaluated_run(tmp_path_factory.mktemp("views") / "birds", boxes=1, num=24, seed=1))
    path = run.image_paths(run.predictions())[LARGE]
    ramp = np.linspace(0, 255, ORIGINAL).astype(np.uint8)
    Image.fromarray(np.dstack([np.tile(ramp, (ORIGINAL, 1))] * 3)).save(path)
    return run


@pytest.fixture(scope="module")
def predictions(run: Run) -> Predictions:
    return run.evaluated(PROTOCOL)[1]


@pytest.fixture(scope="module")
def folder(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """inside.html with everything inside, and beside.html with a folder of large pictures."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "inside.html").write_text(render(build_page([run], PROTOCOL)), encoding="utf-8")
    pictures = folder / "large pictures"
    pictures.mkdir()
    assets = Assets.beside(folder / "beside.html", pictures)
    text = render(build_page([run], PROTOCOL, assets=assets))
    (folder / "beside.html").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def page(browser: Any, folder: Path) -> Any:
    browser.set_window_size(1280, 1000)
    browser.get("about:blank")
    browser.get((folder / "inside.html").as_uri())
    settle(browser)
    yield browser
    assert errors(browser) == []


def shown_rows(browser: Any) -> list[int]:
    rows: list[int] = browser.execute_script(
        "return [...document.querySelectorAll('#grid > li')].map(e => Number(e.dataset.index))"
    )
    return sorted(rows)


def go(browser: Any, where: str) -> None:
    browser.execute_script("location.hash = arguments[0]", where)
    settle(browser)


def visible(browser: Any, name: str) -> bool:
    shown: bool = browser.execute_script(
        "return document.getElementById(arguments[0]).checkVisibility()", name
    )
    return shown


def test_a_class_has_an_address_and_a_way_back(page: Any, predictions: Predictions) -> None:
    from selenium.webdriver.common.keys import Keys

    links = page.find_elements("css selector", "#classes tbody th a")
    links[1].send_keys(Keys.ENTER)
    settle(page)
    assert page.current_url.endswith("#class/1")
    assert page.find_element("id", "view-name").text == "Crow"
    assert page.title.startswith("Crow")
    assert page.switch_to.active_element.get_attribute("id") == "view-name"
    assert shown_rows(page) == np.flatnonzero(np.asarray(predictions.labels) == 1).tolist()
    assert not visible(page, "results")
    page.find_element("id", "view-next").send_keys(Keys.ENTER)
    settle(page)
    assert page.find_element("id", "view-name").text == "Grey Gull"
    assert not page.find_element("id", "view-next").is_displayed(), "the last class"
    page.back()
    settle(page)
    assert page.find_element("id", "view-name").text == "Crow"
    page.back()
    settle(page)
    assert visible(page, "results")
    assert not visible(page, "view")
    assert shown_rows(page) == list(range(len(predictions)))
    assert page.switch_to.active_element.text == "Crow", "the link that was followed"
    page.forward()
    settle(page)
    assert page.find_element("id", "view-name").text == "Crow"
    page.find_element("id", "view-back").click()
    settle(page)
    assert visible(page, "classes")
    top = page.execute_script("return document.getElementById('classes').getBoundingClientRect().top")
    assert -5 < top < 700


def test_a_page_opens_at_a_class(browser: Any, folder: Path, run: Run) -> None:
    browser.get("about:blank")
    browser.get((folder / "inside.html").as_uri() + "#class/2")
    settle(browser)
    assert browser.find_element("id", "view-name").text == "Grey Gull"
    cells = browser.execute_script(
        "return [...document.querySelector('#view tbody tr').cells].map(c => c.textContent)"
    )
    (row,) = [r for r in run.scores[PROTOCOL.name].per_class if r.name.endswith("Grey_Gull")]
    keys = ("top1_cls", "top1_loc", "top5_loc", "gt_known_loc")
    assert cells == ["birds", str(row.num_images), *(f"{row.figures[key]:.1f}" for key in keys)]
    for unknown in ("#class/99", "#pair/1/99", "#class/x", "#nothing"):
        go(browser, unknown)
        assert visible(browser, "results"), unknown
    assert errors(browser) == []


def test_filters_come_back_after_a_view(page: Any, predictions: Predictions) -> None:
    page.execute_script(
        "const e = document.getElementById('class'); e.value = '0'; e.dispatchEvent(new Event('change'))"
    )
    only = shown_rows(page)
    go(page, "class/1")
    assert shown_rows(page) != only
    page.back()
    settle(page)
    assert shown_rows(page) == only


def test_a_pair_shows_its_images_and_a_shot_opens_one(page: Any, predictions: Predictions) -> None:
    labels, named = np.asarray(predictions.labels), predictions.predicted
    link = page.find_element("css selector", "#confusions tbody th a")
    a, b = map(int, link.get_attribute("href").rpartition("#pair/")[2].split("/"))
    shot = page.find_element("css selector", "#confusions .shot")
    # The page scrolls smoothly, and a click on its way would miss.
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", shot)
    shot.click()
    settle(page)
    wanted = np.flatnonzero(((labels == a) & (named == b)) | ((labels == b) & (named == a))).tolist()
    assert page.current_url.endswith(f"#pair/{a}/{b}")
    assert shown_rows(page) == wanted
    assert page.find_element("id", "large").is_displayed()
    assert page.find_element("id", "large-name").text in [predictions.names[row] for row in wanted]
    click(page, "close")


def large_view(browser: Any, row: int) -> dict[str, Any]:
    """Where the enlarged picture, its heat and its boxes are on the screen, and how many pixels it has."""
    found: dict[str, Any] = browser.execute_async_script(
        "const done = arguments[1], at = arguments[0], grid = document.getElementById('grid');"
        "grid.querySelector(`li[data-index='${at}']`).scrollIntoView({block: 'center', behavior: 'instant'});"
        "setTimeout(() => { grid.querySelector(`li[data-index='${at}'] button`).click();"
        "setTimeout(() => { const place = (e) => { const r = e.getBoundingClientRect();"
        "return [r.left, r.top, r.right, r.bottom]; }, body = document.getElementById('large-body');"
        "const photos = [...body.querySelectorAll('.photo')], image = new Image();"
        "image.onload = () => done({photos: photos.map(place), heat: place(body.querySelector('.heat')),"
        "predicted: place(body.querySelector('.predicted')), truth: place(body.querySelector('.truth')),"
        "pixels: image.naturalWidth, href: photos.at(-1).getAttribute('href').slice(0, 40)});"
        "image.onerror = () => done({pixels: 0}); image.src = photos.at(-1).getAttribute('href'); }, 500);"
        "}, 500)",
        row,
    )
    return found


@pytest.mark.parametrize(("name", "pixels"), [("inside.html", 960), ("beside.html", ORIGINAL)])
@pytest.mark.parametrize("width", [1280, 500])
def test_an_enlarged_picture_is_large_and_everything_lies_on_it(
    browser: Any, folder: Path, predictions: Predictions, name: str, pixels: int, width: int
) -> None:
    browser.set_window_size(width, 1000)
    browser.get("about:blank")
    browser.get((folder / name).as_uri())
    settle(browser)
    found = large_view(browser, LARGE)
    assert found["pixels"] == pixels, "more than 640, and no more than the photo has"
    assert found["href"].startswith("data:" if name == "inside.html" else "large%20pictures/")
    left, top, right, bottom = found["photos"][0]
    assert right - left == pytest.approx(bottom - top, abs=1), "the photo is square"
    assert right - left <= 641
    if width == 1280:
        assert right - left > 500
    for other in (*found["photos"], found["heat"]):
        np.testing.assert_allclose(other, found["photos"][0], atol=0.6)
    scale = (right - left) / SIDE
    truth = predictions.truths(LARGE)[0]
    np.testing.assert_allclose(
        found["truth"], np.array([left, top, left, top]) + scale * truth, atol=3, err_msg="lines have a width"
    )
    assert errors(browser) == []


def test_without_its_folder_the_small_picture_stays(
    browser: Any, folder: Path, tmp_path: Path, predictions: Predictions
) -> None:
    alone = tmp_path / "beside.html"
    alone.write_text((folder / "beside.html").read_text(encoding="utf-8"), encoding="utf-8")
    browser.set_window_size(1280, 1000)
    browser.get(alone.as_uri())
    settle(browser)
    found = large_view(browser, LARGE)
    assert found["pixels"] == 256
    assert len(found["photos"]) == 1
    browser.get_log("browser")  # the missing file is named there


@pytest.mark.parametrize("width", [1280, 360])
def test_no_view_is_wider_than_the_window(page: Any, width: int) -> None:
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    try:
        for where in ("class/0", "pair/0/1", "confusions"):
            go(page, where)
            assert page.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_unreadable_image_is_in_its_class(page: Any, predictions: Predictions) -> None:
    label = int(predictions.labels[UNREADABLE])
    go(page, f"class/{label}")
    assert UNREADABLE in shown_rows(page)
    data = json.loads(page.execute_script("return document.getElementById('data').textContent"))
    counts = data["class_views"]["runs"][0]["outcomes"][label]
    assert counts[data["kinds"].index("unreadable image")] == 1


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_of_a_comparison(browser: Any, run: Run, tmp_path: Path, width: int) -> None:
    path = tmp_path / "compare.html"
    path.write_text(compare_runs([run], published=True).to_page(), encoding="utf-8")
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    try:
        browser.get(path.as_uri())
        settle(browser)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        head = browser.find_element("css selector", "#results th:nth-child(6) button")
        browser.execute_script("arguments[0].click()", head)
        column = browser.execute_script(
            "return [...document.querySelectorAll('#results tbody tr')]"
            ".map(r => parseFloat(r.cells[5].textContent) || 0)"
        )
        assert column == sorted(column, reverse=True), "the first click puts the highest first"
        loaded = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
        assert [name for name in loaded if not name.startswith("data:")] == []
        assert errors(browser) == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
