"""`wsol refine` as a user has it: of a trained run, of a classifier, of DDT and of `wsol discover`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import wsol
from tests.helpers import red_discs
from tests.helpers.training import assert_same_runs, train_run
from wsol.api.refining import refining_config
from wsol.cli import main
from wsol.config import Config
from wsol.data.dataset import EpochSampler, make_train_loader
from wsol.data.image import read_image
from wsol.data.index import open_dataset
from wsol.data.transforms import View
from wsol.errors import ConfigError, DataError, RunFolderError
from wsol.localization.predictions import Predictions
from wsol.localization.refined import RefinedLocalizer
from wsol.models.heads.targets import FOREGROUND
from wsol.run import Run
from wsol.training.guides import Guides
from wsol.views.seeds import group_over_seeds

LIGHT: dict[str, Any] = {
    "model": {"backbone": "tiny", "weights": "none", "head": {"name": "foreground", "channels": 8}},
    "train": {"epochs": 2, "batch_size": 8, "lr": 0.02, "device": "cpu"},
    "data": {"workers": 0},
}


@pytest.fixture(scope="module")
def refined_once(trained_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "refined"
    return wsol.refine(trained_once, path, config=LIGHT).path


@pytest.fixture
def refined(refined_once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(refined_once, tmp_path / "refined")


def test_the_result_is_a_run_with_the_classes_of_its_source(refined: Path, trained_once: Path) -> None:
    run, source = Run(refined), Run(trained_once)
    assert run.classes == source.classes
    assert run.config.data == source.config.data
    assert (run.config.model.head.name, run.config.refine is not None) == ("foreground", True)
    assert "val_gt_known_loc" in run.history[-1]
    assert not {"accuracy", "val_top1_cls", "val_top1_loc"} & set(run.history[-1])
    record = json.loads((refined / "source.json").read_text())
    assert record["digest"] == source.checkpoint.digest
    assert record["path"] == str(trained_once.resolve())

    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    both, plain = run.any_localizer("cpu"), source.any_localizer("cpu")
    with torch.no_grad():
        output = both(images)
        assert torch.equal(output.logits, plain(images).logits)
        maps = both.maps_for(output, torch.tensor([[0, 3], [1, 2]]))
    assert torch.equal(maps[:, 0], maps[:, 1])
    assert maps.shape[2:] == (8, 8)


def test_every_command_takes_it(
    refined: Path, trained: Path, birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = wsol.evaluate(refined, ["gpca", "danet"], device="cpu")
    wsol.evaluate(trained, ["gpca", "danet"], device="cpu")
    before = Run(trained).scores
    for protocol in ("gpca", "danet"):  # by one test image, and by ten crops
        for figure in ("top1_cls", "top5_cls"):
            assert scores[protocol][figure] == before[protocol][figure]
    assert scores.held_out_from == "images held out of training"
    photo = next(birds.rglob("*.jpg"))
    assert wsol.load(refined, device="cpu")(photo).name == wsol.load(trained, device="cpu")(photo).name
    assert main(["localize", str(refined), str(photo), "--out", str(tmp_path / "found")]) == 0
    assert main(["report", str(refined), str(trained), "--out", str(tmp_path / "both.html")]) == 0
    assert main(["visualize", str(refined), "--out", str(tmp_path / "pictures")]) == 0
    assert main(["compare", str(trained), str(refined)]) == 0
    assert "CAM refined" in capsys.readouterr().out
    assert main(["analyze", str(refined)]) == 2
    assert "knows no classes" in capsys.readouterr().err
    assert wsol.export(refined, tmp_path / "both.pt2").is_file()


def test_a_stopped_run_continues_bit_for_bit(refined: Path, trained_once: Path, tmp_path: Path) -> None:
    config = refining_config(trained_once, LIGHT)
    path = tmp_path / "stopped"
    assert train_run(config, path, stop_after=3) != 0
    shutil.move(trained_once, tmp_path / "moved")  # the source is needed no longer
    try:
        assert train_run(config, path, resume=True) == 0
    finally:
        shutil.move(tmp_path / "moved", trained_once)
    assert_same_runs(path, refined)


def test_labels_of_pixels_come_from_the_true_class(refined: Path, trained_once: Path) -> None:
    run = Run(refined)
    assert run.config.refine is not None
    index = open_dataset(run.config.data)
    samples = index.split("train")
    kept = Predictions(run.folder.guides)
    assert kept.names == tuple(s.name for s in samples)
    localizer = Run(trained_once).any_localizer("cpu")
    square = View("resize", 64).apply(read_image(samples[5].path)).transpose(2, 0, 1)[None]
    with torch.no_grad():
        output = localizer(torch.from_numpy(square))
        expected = localizer.maps_for(output, torch.tensor([samples[5].label]))[0]
    np.testing.assert_allclose(kept.raw_map(5), expected, atol=1e-4)

    guides = Guides(kept, run.config.data.resize, run.config.refine)
    sampler = EpochSampler(len(samples), 8, seed=0)
    loader = make_train_loader(samples, sampler, resize=72, side=64, seed=0, label_pixels=guides)
    batch = next(iter(loader))
    assert batch.pixels is not None
    assert batch.pixels.shape == (8, 64, 64)
    assert (batch.pixels == FOREGROUND).any()


def test_a_plain_classifier_can_be_refined(birds: Path, tmp_path: Path) -> None:
    found = wsol.from_classifier(
        "tests.helpers.classifiers:SmallNet", "gradcam", classes=list("abcde"), image_size=64, device="cpu"
    )
    wsol.evaluate(found, ["gpca"], data=birds, out=tmp_path / "plain", device="cpu", batch=8)
    run = wsol.refine(tmp_path / "plain", tmp_path / "refined", config=LIGHT)
    assert run.config.data.val_share == 0.1
    assert run.config.refine is not None
    assert run.config.refine.method == "Grad-CAM"
    # It does not know the birds: each map was that of its own best class, and the result knows no classes.
    assert run.source is None
    scores = wsol.evaluate(run, ["gpca"], device="cpu")
    assert "top1_loc" not in scores["gpca"]


def test_ddt_and_discovered_photos_can_be_refined(
    birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    red_discs.register()
    truth = red_discs.write_photos(tmp_path / "photos", 12)
    arguments: dict[str, Any] = {"backbone": "colours", "weights": "none", "size": 96, "device": "cpu"}
    wsol.discover(tmp_path / "photos", tmp_path / "found", **arguments)
    run = wsol.refine(tmp_path / "found", tmp_path / "light", config=LIGHT, set={"train.epochs": 6})
    assert run.config.data.name == "photos"
    assert run.config.refine is not None
    assert run.config.refine.method == "DDT"
    one = wsol.load(run, device="cpu")(tmp_path / "photos" / next(iter(truth)))
    assert one.name == "object"
    with pytest.raises(DataError, match="no test images"):
        wsol.evaluate(run, device="cpu")
    assert refining_config(tmp_path / "found").train.batch_size == 12  # all photos, where they are few

    settings = {
        "data": {"root": str(birds), "image_size": 64, "resize": 72, "workers": 0},
        "model": {"backbone": "tiny", "weights": "none", "head": {"name": "ddt", "images": 8}},
        "train": {"batch_size": 8, "device": "cpu"},
    }
    ddt = wsol.train(settings, tmp_path / "ddt")
    again = wsol.refine(ddt, tmp_path / "light_ddt", config=LIGHT)
    assert again.source is None
    assert not (again.path / "source").exists()
    scores = wsol.evaluate(again, ["gpca"], device="cpu")
    assert "top1_loc" not in scores["gpca"]
    assert "held_out" in scores["gpca"].at


def test_refined_twice_keeps_the_classes(refined: Path, tmp_path: Path, trained_once: Path) -> None:
    run = wsol.refine(refined, tmp_path / "twice", config=LIGHT, set={"train.epochs": 1})
    both = run.any_localizer("cpu")
    assert isinstance(both, RefinedLocalizer)
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    with torch.no_grad():
        expected = Run(trained_once).any_localizer("cpu")(images).logits
        assert torch.equal(both(images).logits, expected)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"data.image_size": 80, "data.resize": 90}, ConfigError, "gives the classes and sees images of 64"),
        ({"model.head": "cam"}, ConfigError, "learns from labels"),
        ({"refine.background": 0.9}, ConfigError, "above foreground"),
        ({"refine.foregruond": 0.9}, ConfigError, "foreground"),
    ],
)
def test_what_does_not_fit_is_one_line(
    trained_once: Path, tmp_path: Path, change: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        wsol.refine(trained_once, tmp_path / "new", config=LIGHT, set=change)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "new").exists()


def test_what_is_no_source_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "missing"):
        with pytest.raises(RunFolderError, match="neither a run folder nor what `wsol discover` writes"):
            wsol.refine(path, tmp_path / "new", config=LIGHT)
    for name in ("boxes.json", "directions.json"):
        (tmp_path / "empty" / name).write_text("[]")
    with pytest.raises(DataError, match="not what `wsol discover` writes"):
        wsol.refine(tmp_path / "empty", tmp_path / "new", config=LIGHT)
    with pytest.raises(ConfigError, match="learns from the maps of another run"):
        wsol.train({"model": {"backbone": "tiny", "weights": "none", "head": "foreground"}}, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_damaged_refined_run_is_one_line(refined: Path) -> None:
    (refined / "source" / "config.yaml").unlink()
    with pytest.raises(RunFolderError, match="not a run folder"):
        wsol.load(refined, device="cpu")
    (refined / "source.json").unlink()
    with pytest.raises(RunFolderError, match="cannot be read"):
        wsol.load(refined, device="cpu")


def test_a_source_that_changed_is_refused(refined: Path, trained_once: Path) -> None:
    shutil.rmtree(refined / "guides")
    record = json.loads((refined / "source.json").read_text())
    (refined / "source.json").write_text(json.dumps(record | {"digest": "0" * 64}))
    with pytest.raises(RunFolderError, match="has changed since"):
        wsol.refine(trained_once, refined, config=LIGHT, resume=True)


def test_seeds_are_one_experiment(refined: Path, trained_once: Path, tmp_path: Path) -> None:
    other = shutil.copytree(refined, tmp_path / "other")
    text = (other / "config.yaml").read_text().replace("\n  seed: 0", "\n  seed: 1")
    (other / "config.yaml").write_text(text.replace(str(trained_once), "runs/cam_s1"))
    groups = group_over_seeds([Run(refined), Run(other)])
    assert [len(group) for group in groups] == [2]


def test_the_shipped_configs_refine(trained_once: Path) -> None:
    for name in ("refine", "cub40/mobilenet_v1_refine"):
        config = refining_config(trained_once, name)
        assert isinstance(config, Config)
        assert config.model.head.guided
        assert config.data.image_size == 64


def test_the_command_refines(
    trained_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    light = "model: {backbone: tiny, weights: none, head: foreground}\ntrain: {batch_size: 8, device: cpu}\n"
    Path("light.yaml").write_text(light)
    options = ["--config", "light.yaml", "--set", "train.epochs=1", "--set", "data.workers=0"]
    assert main(["refine", str(trained_once), *options]) == 0
    said = capsys.readouterr().out
    assert "refined: runs/trained-refined" in said
    assert "next: wsol evaluate runs/trained-refined" in said
