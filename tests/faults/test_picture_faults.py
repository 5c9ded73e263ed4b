"""Pictures that are not what they should be: handled or named, never a traceback, and the others go on."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from wsol.api.localizing import load
from wsol.cli import main
from wsol.data import image as image_module
from wsol.data.photos import batch_photos, read_photos
from wsol.data.pixel_budget import PixelBudget
from wsol.errors import DataError
from wsol.localization.finder import Finder

CONFIG = """\
data: {{name: cub, root: {root}, image_size: 64, resize: 72, workers: 0}}
model: {{backbone: tiny, weights: none, head: {{name: cam, channels: 16}}}}
train: {{epochs: 1, batch_size: 10, device: cpu}}
"""


@pytest.fixture(scope="module")
def run(birds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults")
    (folder / "run.yaml").write_text(CONFIG.format(root=birds))
    assert main(["train", str(folder / "run.yaml"), "--run-dir", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def find(run: Path) -> Finder:
    return load(run)


def noise(width: int, height: int, channels: int = 3) -> np.ndarray:
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def write_animation(path: Path) -> None:
    frames = [Image.fromarray(noise(40, 30) // (i + 1)) for i in range(3)]
    frames[0].save(path, save_all=True, append_images=frames[1:])


GOOD: dict[str, Callable[[Path], object]] = {
    "plain.jpg": lambda p: Image.fromarray(noise(50, 40)).save(p),
    "plain.bmp": lambda p: Image.fromarray(noise(50, 40)).save(p),
    "plain.webp": lambda p: Image.fromarray(noise(50, 40)).save(p),
    "plain.tiff": lambda p: Image.fromarray(noise(50, 40)).save(p),
    "one_pixel.png": lambda p: Image.fromarray(noise(1, 1)).save(p),
    "thin.png": lambda p: Image.fromarray(noise(3000, 1)).save(p),
    "transparent.png": lambda p: Image.fromarray(noise(50, 40, 4)).save(p),
    "grey.png": lambda p: Image.fromarray(noise(50, 40, 1)).save(p),
    "palette.png": lambda p: Image.fromarray(noise(50, 40)).convert("P").save(p),
    "bits16.png": lambda p: Image.fromarray(noise(50, 40, 1).astype(np.uint16) * 257).save(p),
    "cmyk.jpg": lambda p: Image.fromarray(noise(50, 40)).convert("CMYK").save(p),
    "animated.gif": write_animation,
    "animated.webp": write_animation,
    "strange \n <b>name '\" &amp;.png": lambda p: Image.fromarray(noise(50, 40)).save(p),
}


def write_cut(path: Path) -> None:
    Image.fromarray(noise(200, 200)).save(path)
    path.write_bytes(path.read_bytes()[:900])


BAD: dict[str, Callable[[Path], object]] = {
    "empty.jpg": lambda p: p.touch(),
    "text.png": lambda p: p.write_text("not a picture"),
    "cut.jpg": write_cut,
    "cut.png": write_cut,
    "float.tiff": lambda p: Image.fromarray(noise(9, 9, 1).astype(np.float32)).save(p),
}


def test_strange_pictures_are_handled_and_broken_ones_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "photos", tmp_path / "out"
    folder.mkdir()
    for name, write in {**GOOD, **BAD}.items():
        write(folder / name)
    assert main(["localize", str(run), str(folder), "--out", str(out)]) == 1
    text = capsys.readouterr()
    assert "Traceback" not in text.err
    record = json.loads((out / "boxes.json").read_text())
    assert {i["file"] for i in record["images"]} == set(GOOD)
    assert {u["file"] for u in record["unreadable"]} == set(BAD)
    for name in BAD:
        assert text.err.count(str(folder / name)) == 1
    for image in record["images"]:
        for found in image["boxes"]:
            x0, y0, x1, y1 = found["box"]
            assert 0 <= x0 <= x1 <= image["width"]
            assert 0 <= y0 <= y1 <= image["height"]
            assert np.isfinite(found["score"])
        with Image.open(out / "overlays" / f"{image['file']}.png") as overlay:
            assert overlay.mode == "RGB"
    assert f"{len(GOOD)} of {len(GOOD) + len(BAD)} photos" in text.out


def test_nothing_but_broken_pictures_is_another_exit_code(run: Path, tmp_path: Path) -> None:
    BAD["cut.jpg"](tmp_path / "cut.jpg")
    assert main(["localize", str(run), str(tmp_path), "--out", str(tmp_path / "out")]) == 2


@pytest.mark.parametrize("kind", ["rotated", "16-bit", "transparent"])
def test_a_pillow_image_is_localized_as_its_path(find: Finder, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "odd.png"
    exif = Image.Exif()
    exif[0x0112] = 6
    ramp = np.linspace(0, 65535, 50 * 40).reshape(40, 50).astype(np.uint16)
    image = {
        "rotated": Image.fromarray(noise(50, 40)),
        "16-bit": Image.fromarray(ramp),
        "transparent": Image.fromarray(noise(50, 40, 4)),
    }[kind]
    image.save(path, exif=exif if kind == "rotated" else Image.Exif())
    expected = find(path)
    with Image.open(path) as opened:
        found = find(opened)
    assert found.size == expected.size
    assert found.box == expected.box
    assert [one.score for one in found.found] == [one.score for one in expected.found]


def test_a_missing_photo_is_named_and_nothing_else(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "gone.jpg"
    assert main(["localize", str(run), str(missing), "--out", str(tmp_path / "out")]) == 2
    assert f"{missing}: no such image file" in capsys.readouterr().err
    assert json.loads((tmp_path / "out" / "boxes.json").read_text())["images"] == []


@pytest.mark.long
def test_a_hundred_megapixels_are_handled_alone_in_their_batch(
    find: Finder, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    huge = tmp_path / "huge.png"
    Image.new("1", (12500, 8000)).save(huge)
    small = tmp_path / "small.png"
    Image.fromarray(noise(20, 20)).save(small)
    batches = list(batch_photos({"a": small, "huge": huge, "b": small}))
    assert [list(b) for b in batches] == [["a"], ["huge"], ["b"]]
    found = find(huge)
    assert found.size == (12500, 8000)
    assert max(found.overlay().size) <= 1024
    assert list(recwarn) == []


def test_a_decompression_bomb_is_named(find: Finder, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.png"
    Image.new("1", (20000, 20000)).save(bomb)
    with pytest.raises(DataError, match="pixels"):
        find(bomb)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_give_boxes_or_one_clear_error(
    data: st.DataObject, find: Finder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    name = data.draw(
        st.sampled_from(["plain.jpg", "plain.webp", "plain.tiff", "transparent.png", "animated.gif"])
    )
    path = folder / name
    GOOD[name](path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    images, errors = read_photos({"photo": path})
    if errors:
        assert errors["photo"].startswith(f"{path}: ")
    else:
        found = find(images["photo"])
        assert found.box.clip(*found.size) == found.box


@pytest.mark.long
def test_everything_runs_without_a_display(run: Path, tmp_path: Path) -> None:
    photo = tmp_path / "photo.png"
    Image.fromarray(noise(30, 30)).save(photo)
    command = [sys.executable, "-m", "wsol", "localize", str(run), str(photo), "--out", str(tmp_path / "out")]
    environment = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HOME": str(tmp_path)}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "overlays" / "photo.png.png").is_file()


def test_large_pictures_are_decoded_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data set of a few kilobytes must not fill the memory: threads share a number of pixels."""
    monkeypatch.setattr(image_module, "_BUDGET", PixelBudget(1_500))
    paths = [tmp_path / f"{i}.png" for i in range(8)]
    for path in paths:
        Image.new("1", (50, 50)).save(path)
    running, most, guard = 0, 0, threading.Lock()
    convert = image_module._to_rgb

    def watched(image: Image.Image) -> Image.Image:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with guard:
            running -= 1
        return convert(image)

    monkeypatch.setattr(image_module, "_to_rgb", watched)
    assert [facts.size for facts in image_module.in_threads(image_module.inspect_image, paths)] == 8 * [
        (50, 50)
    ]
    assert most == 1
    monkeypatch.setattr(image_module, "_BUDGET", PixelBudget(10**6))
    list(image_module.in_threads(image_module.inspect_image, paths))
    assert most > 1, "small ones are decoded side by side"
