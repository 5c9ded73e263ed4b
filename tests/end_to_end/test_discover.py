"""`wsol discover` and runs of the head `ddt`, as a user has them, on photos of red discs."""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import wsol
from tests.helpers import red_discs
from wsol.cli import main
from wsol.errors import CheckpointError, ConfigError, DataError, RunFolderError
from wsol.localization import discovery
from wsol.scoring.iou import iou

SETTINGS: dict[str, Any] = {"backbone": "colours", "weights": "none", "size": 96, "device": "cpu"}


@pytest.fixture(autouse=True)
def _colours() -> None:
    red_discs.register()


def overlap(a: Any, b: Any) -> float:
    shared = max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    return float(shared / (a.area + b.area - shared))


def test_finds_the_common_object(tmp_path: Path) -> None:
    truth = red_discs.write_photos(tmp_path / "photos", 12)
    found = wsol.discover(tmp_path / "photos", tmp_path / "found", **SETTINGS)
    assert list(found.boxes) == sorted(truth)
    for name, (size, (one,)) in found.boxes.items():
        assert size == (96, 96)
        assert overlap(one.box, truth[name]) > 0.6
        mask = np.asarray(Image.open(tmp_path / "found" / "masks" / f"{name}.png"))
        assert mask.shape == (96, 96)
        assert set(np.unique(mask).tolist()) == {0, 255}
        y, x = np.nonzero(mask)
        assert tuple(one.box) == (x.min(), y.min(), x.max() + 1, y.max() + 1)
        assert (tmp_path / "found" / "overlays" / f"{name}.png").is_file()
    assert all(path.is_file() for path in found.files)
    record = json.loads((tmp_path / "found" / "boxes.json").read_text())
    assert (record["method"], record["backbone"], len(record["images"])) == ("ddt", "colours", 12)
    coco = json.loads((tmp_path / "found" / "boxes_coco.json").read_text())
    assert len(coco["annotations"]) == 12
    with (tmp_path / "found" / "boxes.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 12
    assert Image.open(tmp_path / "found" / "contact_sheet.png").size[0] > 500
    assert "object" in found._repr_html_()


def test_a_photo_without_the_object_is_said_and_not_boxed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    red_discs.write_photos(tmp_path / "photos", 10)
    Image.new("RGB", (96, 96), (0, 160, 160)).save(tmp_path / "photos" / "sea.png")
    arguments = ["--backbone", "colours", "--weights", "none", "--size", "96", "--device", "cpu"]
    assert main(["discover", str(tmp_path / "photos"), "--out", str(tmp_path / "found"), *arguments]) == 0
    said = capsys.readouterr().out
    assert "sea.png: the common object is not in this photo" in said
    assert "10 objects in 11 photos" in said
    record = json.loads((tmp_path / "found" / "boxes.json").read_text())
    assert [len(image["boxes"]) for image in record["images"]] == [1] * 10 + [0]
    assert not (tmp_path / "found" / "masks" / "sea.png.png").exists()


def test_photos_beyond_the_fitted_ones_are_found_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = red_discs.write_photos(tmp_path / "photos", 14)
    monkeypatch.setattr(discovery, "FITTED", 5)
    found = wsol.discover(tmp_path / "photos", **SETTINGS)
    assert all(overlap(one.box, truth[name]) > 0.6 for name, (_, (one,)) in found.boxes.items())
    assert found.files == ()


def test_one_direction_for_each_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place, seed in (("a", 1), ("b", 2)):
        red_discs.write_photos(tmp_path / "photos" / place, 6, seed)
    red_discs.write_photos(tmp_path / "photos" / "single", 1)
    red_discs.write_noise(tmp_path / "photos" / "plain", 4, plain=True)
    found = wsol.discover(tmp_path / "photos", tmp_path / "found", per_folder=True, **SETTINGS)
    assert list(found.directions) == ["a", "b", "plain", "single"]
    assert set(found.no_object) == {"single", "plain"}
    assert {one.name for _, (one,) in found.boxes.values()} == {"a", "b"}
    assert not any(name.startswith(("single", "plain")) for name in found.boxes)
    arguments = ["--per-folder", "--backbone", "colours", "--weights", "none", "--size", "96"]
    assert main(["discover", str(tmp_path / "photos"), "--out", str(tmp_path / "again"), *arguments]) == 1
    assert "single: no common object: there is one photo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: red_discs.write_photos(folder, 1), "there is one photo"),
        (lambda folder: red_discs.write_noise(folder, 5, plain=True), "no common object"),
        (lambda folder: red_discs.write_noise(folder, 5), "does not stand out"),
        (lambda folder: red_discs.write_photos(folder, 8, disc=False), "does not stand out"),
        (lambda folder: _black(folder, 1), "one photo"),
        (lambda folder: _black(folder, 2), "the same everywhere"),
        (lambda folder: (_made(folder) / "a.png").write_text("no picture"), "no photo can be read"),
        (lambda folder: _made(folder), "no pictures in this folder"),
        (lambda folder: folder.write_text("a file"), "not a folder of photos"),
    ],
)
def test_no_common_object_is_one_line_and_nothing_is_written(
    tmp_path: Path, make: Callable[[Path], Any], words: str
) -> None:
    make(tmp_path / "photos")
    with pytest.raises(DataError, match=words) as caught:
        wsol.discover(tmp_path / "photos", tmp_path / "found", **SETTINGS)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "found").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["photos"], "no draft is left"


def _black(folder: Path, number: int) -> None:
    for i in range(number):
        Image.new("RGB", (50, 50)).save(_made(folder) / f"{i}.png")


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def test_bad_arguments(tmp_path: Path) -> None:
    red_discs.write_photos(tmp_path / "photos", 3)
    with pytest.raises(ConfigError, match="unknown backbone 'vgg17'"):
        wsol.discover(tmp_path / "photos", backbone="vgg17", weights="none")
    with pytest.raises(CheckpointError, match=r"^weights: no file 'nothing.pth'"):
        wsol.discover(tmp_path / "photos", **{**SETTINGS, "weights": "nothing.pth"})
    (tmp_path / "text.pth").write_text("no weights")
    with pytest.raises(CheckpointError, match=r"text.pth: "):
        wsol.discover(tmp_path / "photos", **{**SETTINGS, "weights": tmp_path / "text.pth"})
    with pytest.raises(ConfigError, match="size: 8 is outside 32 to 4096"):
        wsol.discover(tmp_path / "photos", **{**SETTINGS, "size": 8})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep")
    with pytest.raises(RunFolderError, match="not an empty folder"):
        wsol.discover(tmp_path / "photos", tmp_path / "full", **SETTINGS)
    assert (tmp_path / "full" / "mine.txt").read_text() == "keep"


def test_an_unreadable_photo_is_named_and_the_others_are_done(tmp_path: Path) -> None:
    red_discs.write_photos(tmp_path / "photos", 6)
    (tmp_path / "photos" / "bad.png").write_text("no picture")
    found = wsol.discover(tmp_path / "photos", **SETTINGS)
    assert list(found.unreadable) == ["bad.png"]
    assert len(found) == 6


@pytest.mark.long
def test_a_kill_leaves_no_half_output(tmp_path: Path) -> None:
    red_discs.write_photos(tmp_path / "photos", 40)
    code = (
        "import time; from tests.helpers import red_discs; red_discs.register(); import wsol\n"
        "from wsol.api import discovering as d\n"
        "write = d.write_pictures\n"
        "d.write_pictures = lambda *a: (write(*a), time.sleep(0.1))\n"
        f"wsol.discover({str(tmp_path / 'photos')!r}, {str(tmp_path / 'found')!r}, **{SETTINGS!r})"
    )
    import subprocess

    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    while process.poll() is None and not list(tmp_path.glob(".wsol-*/masks/*.png")):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "found").exists()
    found = wsol.discover(tmp_path / "photos", tmp_path / "found", **SETTINGS)
    assert len(found) == 40
    assert sorted(p.name for p in tmp_path.iterdir()) == ["found", "photos"], "the draft is cleared"


def config(birds: Path, **head: Any) -> dict[str, Any]:
    return {
        "data": {"root": str(birds), "image_size": 64, "resize": 64, "workers": 0},
        "model": {"backbone": "tiny", "weights": "none", "head": {"name": "ddt", **head}},
        "train": {"batch_size": 8, "device": "cpu"},
    }


def test_a_run_of_ddt_is_a_run_like_any_other(
    birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = wsol.train(config(birds, images=12), tmp_path / "run")
    assert run.history[0]["images"] == 12
    assert run.checkpoint.epoch == 1
    scores = wsol.evaluate(run, ["gpca", "wsoleval-v2"], device="cpu")
    for own in scores.values():
        assert (own.cut, own.threshold) == (0.0, 0.0)
        assert "gt_known_loc" in own
        assert not {"top1_loc", "top5_loc", "top1_cls", "top5_cls"} & set(own.figures)
    assert not run.folder.predictions_of("held_out", "resize").exists(), "no threshold is to be chosen"
    assert wsol.evaluate(run, "gpca", reuse=True)["gpca"].figures == scores["gpca"].figures
    assert main(["evaluate", str(run.path), "--reuse"]) == 0
    said = capsys.readouterr().out
    assert "cuts its raw map itself, at 0" in said
    assert "classification" not in said
    with pytest.raises(ConfigError, match="no normalisation applies"):
        wsol.evaluate(run, "gpca", normalize="pas")
    with pytest.raises(ConfigError, match="knows no classes"):
        wsol.analyze(run)

    # Pictures, page, table and boxes.
    pictures = wsol.visualize(run, num=2, out=tmp_path / "pictures")
    assert len(pictures.files) == 2
    page = wsol.report(run, out=tmp_path / "page.html").path.read_text()
    assert "GT-known" in page
    assert "DDT" in str(wsol.compare([run], threshold="held_out"))
    photo = next((birds / "images").rglob("*.jpg"))
    found = wsol.load(run, device="cpu")(photo)
    assert found.name == "object"
    with pytest.raises(ConfigError, match="cuts its map itself"):
        wsol.load(run, threshold=0.3, device="cpu")


def test_a_run_of_ddt_stands_beside_a_trained_one(birds: Path, trained: Path, tmp_path: Path) -> None:
    run = wsol.train(config(birds), tmp_path / "run", set={"data.val_share": 0.2})
    for path in (trained, run.path):
        wsol.evaluate(path, "gpca", device="cpu")
    both = [trained, run.path]
    assert len(wsol.compare(both).rows) == 2
    assert wsol.report(both, out=tmp_path / "page.html").path.stat().st_size > 10_000
    assert wsol.report(both[::-1], out=tmp_path / "other.html").path.stat().st_size > 10_000
    assert len(wsol.visualize(both, num=1, out=tmp_path / "pictures").files) == 1


def test_a_fit_is_reproducible_and_continues_nothing(birds: Path, tmp_path: Path) -> None:
    from tests.helpers.training import assert_same_runs, train_run
    from wsol.config import Config

    checked = Config.read(config(birds))
    assert train_run(checked, tmp_path / "one") == 0
    assert train_run(checked, tmp_path / "two", stop_after=1) == 128 + signal.SIGTERM
    assert not (tmp_path / "two" / "checkpoints" / "last.ckpt").exists()
    assert train_run(checked, tmp_path / "two", resume=True) == 0
    assert_same_runs(tmp_path / "one", tmp_path / "two")
    assert train_run(checked, tmp_path / "two", resume=True) == 0, "there is nothing left to do"


def test_a_fit_that_fails_leaves_nothing(birds: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        wsol.train(config(birds), tmp_path / "run", set={"model.weights": "missing.pth"})
    assert not (tmp_path / "run").exists()


def test_the_exported_map_is_the_localizers(birds: Path, tmp_path: Path) -> None:
    import torch

    run = wsol.train(config(birds, images=8), tmp_path / "run")
    path = wsol.export(run, tmp_path / "ddt.pt2")
    card = json.loads(path.with_suffix(".json").read_text())
    assert card["classes"] == ["object"]
    assert "above 0" in card["outputs"]["maps"]
    images = torch.randint(0, 256, (3, 3, 64, 64), dtype=torch.uint8)
    _, maps = torch.export.load(path).module()(images)
    with torch.no_grad():
        torch.testing.assert_close(maps, run.localizer("cpu")(images).maps, atol=1e-5, rtol=1e-5)


def test_real_birds_are_found_without_labels(shared: Path, tmp_path: Path) -> None:
    """A few birds at a smaller size; docs/discover.md has the figures of all of them."""
    index = wsol.open_dataset(shared / "cub40" / "CUB_200_2011")
    chosen = {sample.path.name: sample for sample in index.samples[::150]}
    (tmp_path / "photos").mkdir()
    for name, sample in chosen.items():
        (tmp_path / "photos" / name).symlink_to(sample.path)
    weights = shared / "weights" / "vgg16_features_imagenet_fp16.pth"
    found = wsol.discover(tmp_path / "photos", weights=weights, size=224, device="cpu")
    assert not found.no_object
    assert len(found.empty) == 0
    overlaps = [
        iou([boxes[0].box], [chosen[name].boxes[0]], "edge").item()
        for name, (_, boxes) in found.boxes.items()
    ]
    assert sum(overlap >= 0.5 for overlap in overlaps) >= 0.7 * len(chosen)
