"""What a run leaves behind, and what is made of it without the data set."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.configs import MakeConfig
from wsol.cli import main
from wsol.config_file import dump_config, load_config
from wsol.data.dataset import make_eval_loader
from wsol.data.index import open_dataset
from wsol.data.record import DataRecord
from wsol.data.transforms import View
from wsol.errors import DataError
from wsol.records import DataIndex
from wsol.run import Run
from wsol.runs.checkpoint import load_checkpoint
from wsol.runs.folder import RunFolder, default_run_dir, is_free
from wsol.runs.history import read_csv
from wsol.runs.ranks import Ranks
from wsol.training.signals import StopSignal
from wsol.training.trainer import train


def test_the_names_of_the_files() -> None:
    """Run folders of earlier versions keep opening: these names stay."""
    folder = RunFolder("runs/demo")
    names = {
        key: str(value.relative_to(folder.path))
        for key, value in vars(folder).items()
        if isinstance(value, Path) and key != "path"
    }
    assert names == {
        "config": "config.yaml",
        "versions": "versions.json",
        "data": "data.json",
        "weights": "weights.json",
        "plugins": "plugins.json",
        "metrics": "metrics.csv",
        "curves": "curves.png",
        "tensorboard": "tensorboard",
        "diverged": "diverged.json",
        "source_record": "source.json",
        "source": "source",
        "guides": "guides",
        "predictions": "predictions",
        "scores": "scores.json",
        "per_class": "per_class.csv",
        "overlays": "overlays",
        "report": "report.html",
        "analysis": "analysis",
        "card": "README.md",
        "picture": "picture.jpg",
        "packed_weights": "weights.safetensors",
        "manifest": "manifest.json",
    }
    store = folder.checkpoints
    assert (store.folder, store.names) == (
        Path("runs/demo/checkpoints"),
        ("last.ckpt", "previous.ckpt", "best.ckpt"),
    )
    assert folder.predictions_of("test", "resize") == Path("runs/demo/predictions/test-resize")
    assert folder.exported(".onnx") == Path("runs/demo/localizer.onnx")


def test_json_comes_back_and_holds_no_nan(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_json(folder.scores, {"a": 0.1 + 0.2, "b": [float("nan"), -float("inf")], "c": "π \udcff"})
    assert folder.read_json(folder.scores) == {"a": 0.1 + 0.2, "b": [None, None], "c": "π \udcff"}


def test_default_folders_are_numbered_and_resume_takes_the_newest(tmp_path: Path) -> None:
    def name(resume: bool) -> str:
        return default_run_dir("demo", resume, tmp_path).name

    assert (name(False), name(True)) == ("demo", "demo")
    (tmp_path / "demo").mkdir()
    assert (name(False), name(True)) == ("demo", "demo"), "an empty folder is free"
    (tmp_path / "demo" / "config.yaml").touch()
    assert (name(False), name(True)) == ("demo-2", "demo")
    (tmp_path / "demo-2").mkdir()
    (tmp_path / "demo-2" / "config.yaml").touch()
    assert (name(False), name(True)) == ("demo-3", "demo-2")


def test_the_command_leaves_a_complete_folder(
    make_config: MakeConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    config = make_config(model__attention="gpca", model__drop="adl")
    Path("mine.yaml").write_text(dump_config(config))
    assert main(["train", "mine.yaml", "--set", "train.epochs=3"]) == 0
    folder = RunFolder(Path("runs/mine"))
    for path in (folder.config, folder.versions, folder.data, folder.weights, folder.metrics, folder.curves):
        assert path.stat().st_size > 0, path
    assert load_config(folder.config) == load_config("mine.yaml", ["train.epochs=3"])
    assert {p.name for p in folder.checkpoints.folder.iterdir()} == {
        "last.ckpt",
        "previous.ckpt",
        "best.ckpt",
    }
    assert any(folder.tensorboard.iterdir())
    assert json.loads(folder.versions.read_text())["torch"] == torch.__version__.partition("+")[0]
    assert json.loads(folder.weights.read_text())["origin"] == "none"
    data = json.loads(folder.data.read_text())
    assert data["digest"] == open_dataset(config.data).digest()
    assert data["counts"] == {"train": 32, "val": 8, "test": 16}

    rows = read_csv(folder.metrics)
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert set(rows[0]) == {
        *("epoch", "lr", "loss", "accuracy", "gradient_norm", "mask_std", "images_per_second", "seconds"),
        *("val_top1_cls", "val_top1_loc", "val_gt_known_loc"),
        *(f"head.attention.theta{i}" for i in range(4)),
    }
    output = capsys.readouterr().out
    assert sum(line.startswith("epoch ") for line in output.splitlines()) == 3
    assert "wsol evaluate runs/mine" in output


def test_a_run_learns_what_is_easy_to_learn(make_config: MakeConfig, alone: Ranks, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    for name, colour in {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200)}.items():
        for number in range(16):
            noisy = np.clip(draw.normal(colour, 40, (64, 64, 3)), 0, 255).astype(np.uint8)
            path = tmp_path / "colours" / ("train" if number < 12 else "test") / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(noisy).save(path)
    config = make_config(
        data__name="folder",
        data__root=str(tmp_path / "colours"),
        data__resize=64,
        train__epochs=12,
        train__lr=0.005,
    )
    train(config, tmp_path / "run", False, alone, StopSignal())
    rows = read_csv(RunFolder(tmp_path / "run").metrics)
    assert rows[-1]["loss"] < 0.5 * rows[0]["loss"]
    assert rows[-1]["val_top1_cls"] > 0.8
    assert "val_top1_loc" not in rows[-1], "these images have no boxes"


def test_nothing_held_out_means_no_best(make_config: MakeConfig, alone: Ranks, tmp_path: Path) -> None:
    train(make_config(data__val_share=0.0, train__epochs=1), tmp_path, False, alone, StopSignal())
    store = RunFolder(tmp_path).checkpoints
    assert not store.best.exists()
    assert Run(tmp_path).checkpoint.name == store.last.name


@pytest.mark.parametrize("method", ["cam", "danet"])
def test_a_loaded_run_gives_the_trained_outputs_without_the_data(
    make_config: MakeConfig, alone: Ranks, tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(method, model__attention="gpca", train__epochs=1)
    train(config, tmp_path, False, alone, StopSignal())
    index = open_dataset(config.data)

    def no_data(*_: object) -> DataIndex:
        raise AssertionError("a run must load without its data set")

    monkeypatch.setattr("wsol.run.open_dataset", no_data)
    run = Run(tmp_path)
    localizer = run.localizer("cpu")
    assert run.classes == index.classes
    assert run.data.hierarchy == index.hierarchy
    assert run.checkpoint.epoch == 1
    assert not localizer.training
    state = load_checkpoint(RunFolder(tmp_path).checkpoints.last)["model"]
    for name, value in localizer.state_dict().items():
        assert torch.equal(value, state[name]), name
    batch = next(iter(make_eval_loader(index.split("test"), View("resize", 64), batch=4)))
    output = localizer(batch.images)
    assert localizer.maps_for(output, batch.labels).shape[0] == 4


def test_the_best_checkpoint_is_the_one_with_the_most_right_classes(
    make_config: MakeConfig, alone: Ranks, tmp_path: Path
) -> None:
    train(make_config(train__epochs=4, train__lr=0.05), tmp_path, False, alone, StopSignal())
    rows = read_csv(RunFolder(tmp_path).metrics)
    top = max(row["val_top1_cls"] for row in rows)
    newest = max(row["epoch"] for row in rows if row["val_top1_cls"] == top)
    assert Run(tmp_path).checkpoint.epoch == newest


def test_validation_every_other_epoch_and_after_the_last(
    make_config: MakeConfig, alone: Ranks, tmp_path: Path
) -> None:
    train(make_config(train__epochs=3, train__validate_every=2), tmp_path, False, alone, StopSignal())
    rows = read_csv(RunFolder(tmp_path).metrics)
    assert [row["epoch"] for row in rows if "val_top1_cls" in row] == [2, 3]


def test_the_record_of_the_data_comes_back_equal(make_config: MakeConfig) -> None:
    index = open_dataset(make_config().data)
    record = DataRecord.of(index, index.digest(), ("a.jpg: empty",))
    assert DataRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_unreadable_images_stop_the_run_or_are_counted(
    make_config: MakeConfig, alone: Ranks, tmp_path: Path, birds: Path
) -> None:
    copy = tmp_path / "birds"
    copy.mkdir()
    for item in birds.iterdir():
        if item.name != "images":
            (copy / item.name).symlink_to(item)
    for image in sorted((birds / "images").rglob("*.jpg")):
        target = copy / "images" / image.relative_to(birds / "images")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(image)
    broken = next(s for s in open_dataset(make_config().data).split("train")).name
    (copy / "images" / broken).unlink()
    (copy / "images" / broken).write_bytes(b"not an image")

    with pytest.raises(DataError, match="on_bad_image: skip"):
        train(make_config(data__root=str(copy)), tmp_path / "stop", False, alone, StopSignal())
    assert not (tmp_path / "stop").exists()
    config = make_config(data__root=str(copy), data__on_bad_image="skip", train__epochs=1)
    assert train(config, tmp_path / "skip", False, alone, StopSignal()) == 0
    record = json.loads((tmp_path / "skip" / "data.json").read_text())
    assert len(record["skipped"]) == 1
    assert broken in record["skipped"][0]
    assert record["counts"]["train"] == 31


def test_a_run_that_failed_before_its_start_leaves_the_folder_free(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.claim(resume=False)
    folder.release()
    assert is_free(folder.path)
    folder.write(folder.config, "data: {}")
    assert not is_free(folder.path)


@pytest.mark.parametrize(
    ("wanted", "order"),
    [
        ("best", ["best.ckpt", "last.ckpt", "previous.ckpt"]),
        ("last", ["last.ckpt", "previous.ckpt", "best.ckpt"]),
    ],
)
def test_the_config_says_which_checkpoint_is_used(tmp_path: Path, wanted: str, order: list[str]) -> None:
    folder = RunFolder(tmp_path)
    folder.config.write_text(f"eval: {{checkpoint: {wanted}}}\n")
    folder.checkpoints.folder.mkdir()
    for name in order:
        (folder.checkpoints.folder / name).touch()
    assert [path.name for path in Run(tmp_path).checkpoints] == order
