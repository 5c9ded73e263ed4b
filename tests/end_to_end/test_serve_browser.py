"""The page of `wsol serve` in a real browser: photos come in every way, and the drawn box is Python's."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

import wsol as toolkit
from tests.helpers.browser import errors, settle
from tests.helpers.configs import tiny_config
from tests.helpers.training import train_run
from wsol.class_names import display_name
from wsol.localization.finder import Finder
from wsol.records import Box

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def runs(birds: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two small runs, one of them evaluated, so that it has a threshold of its own."""
    folder = tmp_path_factory.mktemp("served")
    for name, method in (("first <b>run</b>", "cam"), ("second", "adl")):
        assert train_run(tiny_config(birds, method), folder / name) == 0
    toolkit.evaluate(folder / "second", device="cpu")
    return [folder / "first <b>run</b>", folder / "second"]


@pytest.fixture(scope="module")
def photos(birds: Path) -> list[Path]:
    return sorted((birds / "images").rglob("*.jpg"))[::9][:3]


@pytest.fixture
def downloads(browser: Any, tmp_path: Path) -> Path:
    """The folder that the browser saves files in."""
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    return tmp_path


@pytest.fixture(scope="module")
def address(runs: list[Path]) -> Iterator[str]:
    with toolkit.serve(runs, port=0, device="cpu") as server:
        yield server.address


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page, opened afresh; no test may leave an error on the console."""
    browser.get(address)
    yield browser
    assert errors(browser) == []


def wait(browser: Any, what: str, script: str, *arguments: object) -> Any:
    """Until the script returns something true."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = browser.execute_script(script, *arguments)
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within a minute")


def wait_for_answers(browser: Any, number: int) -> None:
    """Until so many views of photos show a box."""
    script = (
        "return document.querySelectorAll('.view .ranking').length === arguments[0]"
        " && !document.querySelector('.view.busy')"
    )
    wait(browser, f"{number} answers", script, number)
    settle(browser)


def choose(browser: Any, *photos: Path) -> None:
    browser.find_element("id", "files").send_keys("\n".join(map(str, photos)))


def drag(browser: Any, *photos: Path) -> None:
    """Drop files as a hand does: the events carry a DataTransfer that holds them."""
    browser.execute_script(
        "const made = document.createElement('input'); document.body.append(made);"
        "Object.assign(made, {type: 'file', multiple: true, id: 'made'})"
    )
    browser.find_element("id", "made").send_keys("\n".join(map(str, photos)))
    browser.execute_script(
        "const made = document.getElementById('made'), transfer = new DataTransfer();"
        "for (const file of made.files) transfer.items.add(file);"
        "for (const kind of ['dragenter', 'dragover', 'drop']) document.getElementById('drop').dispatchEvent("
        "  new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: transfer}));"
        "made.remove()"
    )


def move(browser: Any, model: int, index: int) -> float:
    """Bring the slider of a model to a step; returns the threshold there."""
    browser.execute_script(
        "const e = document.getElementById(`threshold-${arguments[0]}`); e.value = arguments[1];"
        "e.dispatchEvent(new Event('input', {bubbles: true}))",
        model,
        index,
    )
    settle(browser)
    thresholds = browser.execute_script(
        "return JSON.parse(document.getElementById('data').textContent).models[arguments[0]].thresholds",
        model,
    )
    shown = browser.find_element("id", f"value-{model}").text
    assert float(shown) == pytest.approx(thresholds[index], abs=0.0006)
    return float(thresholds[index])


def drawn(browser: Any, photo: Path, model: int) -> Box:
    """The blue rectangle of a photo by a model, in pixels of the photo, measured on the screen.

    The place of the rectangle and that of the picture below it are both taken from the layout.
    """
    corners = browser.execute_script(
        "const view = [...document.querySelectorAll(`.view[data-model='${arguments[1]}']`)]"
        "  .find(v => v.closest('.photo').querySelector('h3').textContent === arguments[0]);"
        "const svg = view.querySelector('svg'), rect = view.querySelector('.predicted');"
        "const base = view.querySelector('image').getBoundingClientRect(), box = svg.viewBox.baseVal;"
        "const matrix = rect.getScreenCTM(), b = rect.getBBox();"
        "const at = (x, y) => new DOMPoint(x, y).matrixTransform(matrix);"
        "const low = at(b.x, b.y), high = at(b.x + b.width, b.y + b.height);"
        "const back = p => [(p.x - base.left) / base.width * box.width,"
        "                   (p.y - base.top) / base.height * box.height];"
        "return [...back(low), ...back(high)]",
        photo.name,
        model,
    )
    return Box(*corners)


def attributes(browser: Any, photo: Path, model: int) -> list[float]:
    """The same from the rectangle's attributes, which hold all digits."""
    box: list[float] = browser.execute_script(
        "const view = [...document.querySelectorAll(`.view[data-model='${arguments[1]}']`)]"
        "  .find(v => v.closest('.photo').querySelector('h3').textContent === arguments[0]);"
        "const r = view.querySelector('.predicted');"
        "return ['x', 'y', 'width', 'height'].map(k => parseFloat(r.getAttribute(k)))",
        photo.name,
        model,
    )
    return box


def assert_drawn_where_python_puts_it(
    browser: Any, photo: Path, model: int, find: Finder, class_name: str | None = None
) -> None:
    expected = find(photo, class_name=class_name).box
    assert attributes(browser, photo, model) == [expected.x0, expected.y0, expected.width, expected.height]
    assert drawn(browser, photo, model) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("bring", [choose, drag], ids=["file input", "drop"])
def test_the_box_is_where_python_puts_it(
    page: Any, runs: list[Path], photos: list[Path], bring: Callable[..., None]
) -> None:
    bring(page, *photos)
    wait_for_answers(page, 2 * len(photos))
    for model, run in enumerate(runs):  # first at each run's own threshold
        for photo in photos:
            assert_drawn_where_python_puts_it(page, photo, model, toolkit.load(run, device="cpu"))
    for index in (0, 7, 35, 62, 90, 99):
        for model, run in enumerate(runs):
            find = toolkit.load(run, threshold=move(page, model, index), device="cpu")
            for photo in photos:
                assert_drawn_where_python_puts_it(page, photo, model, find)
    page.execute_script("document.getElementById('reset-1').click()")
    settle(page)
    assert_drawn_where_python_puts_it(page, photos[0], 1, toolkit.load(runs[1], device="cpu"))


def test_classes_are_chosen(page: Any, runs: list[Path], photos: list[Path]) -> None:
    choose(page, photos[0])
    wait_for_answers(page, 2)
    find = toolkit.load(runs[0], device="cpu")
    found = find(photos[0])
    ranks = page.execute_script(
        "const all = [...document.querySelectorAll(\".view[data-model='0'] .rank\")];"
        "return all.map(button => [...button.children].map(part => part.textContent))"
    )
    assert [name for name, _ in ranks] == [display_name(one.name) for one in found.found]
    # One of the ranking, for this photo.
    page.find_elements("css selector", ".view[data-model='0'] .rank")[2].click()
    third = found.found[2].name
    script = (
        "const told = document.querySelector(\".view[data-model='0'] .headline\");"
        "return told.textContent.includes(arguments[0])"
    )
    wait(page, third, script, display_name(third))
    wait_for_answers(page, 2)
    assert_drawn_where_python_puts_it(page, photos[0], 0, find, third)
    # One of the list of all classes, for all photos of a model.
    last = find.classes[-1]
    page.execute_script(
        "const e = document.getElementById('class-0'); e.value = arguments[0];"
        "e.dispatchEvent(new Event('change', {bubbles: true}))",
        str(len(find.classes) - 1),
    )
    wait(page, last, script, display_name(last))
    wait_for_answers(page, 2)
    assert_drawn_where_python_puts_it(page, photos[0], 0, find, last)


def test_boxes_are_downloaded(page: Any, runs: list[Path], photos: list[Path], downloads: Path) -> None:
    choose(page, *photos)
    wait_for_answers(page, 2 * len(photos))
    threshold = move(page, 1, 40)
    find = toolkit.load(runs[1], threshold=threshold, device="cpu")
    found = {photo.name: find(photo, topk=1).best for photo in photos}
    texts = {}
    for file in ("boxes.json", "boxes.csv", "boxes_coco.json"):
        page.execute_script(
            "document.querySelector(`.model[data-model='1'] [data-file='${arguments[0]}']`).click()", file
        )
        path = downloads / f"second_{file}"
        end = time.monotonic() + 30
        while not path.is_file() and time.monotonic() < end:
            time.sleep(0.1)
        texts[file] = path.read_text()
    record = json.loads(texts["boxes.json"])
    assert (record["run"], record["threshold"]) == ("second", threshold)
    assert {one["file"]: one["boxes"][0]["box"] for one in record["images"]} == {
        name: list(one.box) for name, one in found.items()
    }
    rows = {row["file"]: row for row in csv.DictReader(texts["boxes.csv"].splitlines())}
    assert {name: row["class"] for name, row in rows.items()} == {n: one.name for n, one in found.items()}
    coco = json.loads(texts["boxes_coco.json"])
    names = {image["id"]: image["file_name"] for image in coco["images"]}
    assert {names[a["image_id"]]: a["bbox"] for a in coco["annotations"]} == {
        name: [one.box.x0, one.box.y0, one.box.width, one.box.height] for name, one in found.items()
    }


def test_examples_and_everything_else_by_keyboard(page: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def press(key: str) -> Any:
        ActionChains(page).send_keys(key).perform()  # not to an element: a file input takes keys as files
        settle(page)
        return page.switch_to.active_element

    page.execute_script("document.getElementById('files').focus()")
    example = press(Keys.TAB)
    assert "example" in example.get_attribute("class")
    press(Keys.ENTER)
    wait_for_answers(page, 2)
    page.execute_script("document.querySelectorAll('.example')[7].focus()")
    slider = press(Keys.TAB)
    before = page.find_element("id", "value-0").text
    assert slider.get_attribute("id") == "threshold-0"
    press(Keys.ARROW_RIGHT)
    assert float(page.find_element("id", "value-0").text) > float(before)
    page.execute_script("document.querySelectorAll('.rank')[1].focus()")
    press(Keys.ENTER)
    wait(page, "the chosen class", "return document.querySelectorAll('.rank')[1].ariaPressed === 'true'")
    wait_for_answers(page, 2)
    assert page.switch_to.active_element.get_attribute("aria-pressed") == "true"
    page.execute_script("document.querySelector('.photo-head button').focus()")
    focused = press(Keys.ENTER)
    assert page.find_elements("css selector", ".photo") == []
    assert focused.get_attribute("id") == "files"
    assert page.find_element("id", "nothing").is_displayed()


def test_a_file_that_is_no_photo_is_told_in_one_line(
    browser: Any, address: str, photos: list[Path], tmp_path: Path
) -> None:
    fake = tmp_path / "<img src=x>.jpg"
    fake.write_text("<html>")
    browser.get(address)
    choose(browser, fake, photos[0])
    wait_for_answers(browser, 2)  # the other photo is looked at
    assert browser.find_element("css selector", ".refused").text.startswith("not an image")
    assert "<img src=x>.jpg" in [e.text for e in browser.find_elements("css selector", "h3")]
    log = [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"]
    assert len(log) == 1  # what the browser itself says of a refused request
    assert "422" in log[0]


def test_heat_is_switched_off(page: Any, photos: list[Path]) -> None:
    choose(page, photos[0])
    wait_for_answers(page, 2)
    seen = "return [...document.querySelectorAll('.heat')].map(e => e.getAttribute('visibility'))"
    assert page.execute_script(seen) == ["visible", "visible"]
    page.execute_script("document.getElementById('heat').click()")
    assert page.execute_script(seen) == ["hidden", "hidden"]


@pytest.mark.parametrize("width", [1400, 700, 360])
def test_nothing_is_wider_than_the_window(page: Any, photos: list[Path], width: int) -> None:
    choose(page, photos[0])
    wait_for_answers(page, 2)
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    settle(page)
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_on_a_telephone_what_was_found_is_seen_at_once(page: Any) -> None:
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        page.execute_script("scrollTo(0, 0); document.querySelectorAll('.example')[2].click()")
        wait_for_answers(page, 2)
        top, bottom, dials, height = page.execute_script(
            "const at = e => document.querySelector(e).getBoundingClientRect();"
            "return [at('.photo').top, at('.view svg').bottom, at('#dials').bottom, innerHeight]"
        )
        assert dials <= top < bottom <= height
        assert page.find_element("css selector", "#dials h2").text == "Threshold"
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
    assert light != dark


def test_everything_comes_from_this_server(page: Any, address: str, photos: list[Path]) -> None:
    choose(page, photos[0])
    wait_for_answers(page, 2)
    loaded = page.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in loaded if not name.startswith((address, "data:", "blob:"))] == []


def resident(process: subprocess.Popen[str]) -> int:
    """Memory of a process in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def test_memory_stays_where_it_was(
    wsol: Callable[..., subprocess.Popen[str]], runs: list[Path], photos: list[Path], tmp_path: Path
) -> None:
    """200 requests of 8 clients, photos of 12 megapixels among them; then Ctrl-C ends the command."""
    from PIL import Image

    if not Path("/proc/self/status").is_file():
        pytest.skip("needs /proc")
    large = tmp_path / "large.jpg"
    with Image.open(photos[0]) as image:
        image.resize((4000, 3000)).save(large)
    bodies = [path.read_bytes() for path in (*photos, large)]
    process = wsol("serve", *runs, "--port", 0, "--device", "cpu", cwd=tmp_path)
    line = process.stdout.readline() if process.stdout else ""
    address = next(word for word in line.split() if word.startswith("http"))

    def ask(number: int) -> int:
        path = ("find?model=0", "find?model=1", "picture")[number % 3]
        with urlopen(Request(f"{address}{path}", bodies[number % 4]), timeout=120) as answer:
            assert answer.read()
            return int(answer.status)

    with ThreadPoolExecutor(8) as clients:
        assert set(clients.map(ask, range(48))) == {200}  # what is allocated once is now
        before = resident(process)
        assert set(clients.map(ask, range(200))) == {200}
        after = resident(process)
    assert after - before < 40, f"from {before} to {after} MB"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out.strip(), err) == (0, "ended", "")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["large.jpg"]
