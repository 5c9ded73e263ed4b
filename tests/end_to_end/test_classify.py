"""`wsol classify` as a user types it: train, resume, measure, compare; and what a classifier cannot do."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import wsol
from tests.helpers.configs import write_config
from tests.helpers.processes import torchrun
from tests.helpers.training import assert_same_runs, train_run
from wsol.cli import main
from wsol.config import Config
from wsol.errors import ConfigError
from wsol.runs.checkpoint import load_checkpoint
from wsol.runs.folder import RunFolder
from wsol.runs.history import read_csv


def small_config(root: Path, attention: str = "gpca", changes: Mapping[str, Any] | None = None) -> Config:
    """A thin ResNet of eight layers at 32 px, two epochs; changes: `{"train.lr": 0.1}`."""
    values = {
        "data": {"root": str(root), "image_size": 32, "resize": 32, "pad": 4, "val_share": 0.2, "workers": 0},
        "network": {"name": "resnet_thin", "depth": 8, "attention": attention},
        "train": {"epochs": 2, "batch_size": 8, "lr": 0.05, "device": "cpu"},
    }
    return Config.read(values, set=changes)


@pytest.fixture(scope="module")
def run(birds: Path, tmp_path_factory: pytest.TempPathFactory) -> wsol.Run:
    """A classifier that was trained and measured."""
    folder = tmp_path_factory.mktemp("classified") / "gpca"
    trained = wsol.classify(small_config(birds), folder)
    wsol.evaluate(trained, device="cpu")
    return trained


def test_the_run_folder_is_that_of_any_run(run: wsol.Run) -> None:
    assert run.config.eval.protocol == "classes"
    assert "model:" not in run.folder.config.read_text()
    last = run.history[-1]
    assert {"loss", "accuracy", "val_top1_cls", "mask_std", "network.layer1.0.bn2.attention.theta1"} <= set(
        last
    )
    assert not any("loc" in name for name in last)
    assert run.folder.curves.is_file()
    model = run.trained_classifier("cpu")
    assert not model.training
    assert 0 <= run.scores["classes"]["top1_cls"] <= run.scores["classes"]["top5_cls"] == 100  # of 4 classes
    with run.folder.per_class.open() as file:
        assert [row["class"] for row in csv.DictReader(file)] == list(run.classes)


def test_maps_of_the_trained_network_by_a_map_method(run: wsol.Run, birds: Path) -> None:
    network = run.trained_classifier("cpu").network
    find = wsol.from_classifier(network, "gradcam", classes=run.classes, image_size=32, device="cpu")
    assert find(next(birds.rglob("*.jpg"))).name in run.classes


def test_evaluate_prints_errors(run: wsol.Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run.path), "--reuse"]) == 0
    printed = capsys.readouterr().out
    assert "top-1 error" in printed
    assert f"{100 - run.scores['classes']['top1_cls']:.2f}" in printed
    assert "next:" not in printed, "nothing that needs boxes is suggested"
    assert "threshold" not in printed


def test_the_figures_are_those_of_the_network(run: wsol.Run) -> None:
    """Counted with a plain loop over the files."""
    import torch

    from wsol.data.image import read_image
    from wsol.data.transforms import View

    model, right = run.trained_classifier("cpu"), 0
    samples = wsol.open_dataset(run.config.data.root).split("test")
    for sample in samples:
        square = View("resize", 32).apply(read_image(sample.path))
        with torch.no_grad():
            scores = model(torch.from_numpy(square.copy()).permute(2, 0, 1)[None]).logits
        right += int(scores.argmax()) == sample.label
    assert run.scores["classes"]["top1_cls"] == pytest.approx(100 * right / len(samples))


def test_the_crop_is_another_protocol_and_both_are_kept(run: wsol.Run) -> None:
    wsol.evaluate(run, "classes-crop", device="cpu")
    assert {"classes", "classes-crop"} <= set(wsol.Run(run.path).scores)


def test_compare_takes_classifiers(run: wsol.Run, birds: Path, tmp_path: Path) -> None:
    plain = wsol.classify(small_config(birds, "identity", {"train.epochs": 1}), tmp_path / "plain")
    wsol.evaluate(plain, device="cpu")
    table = str(wsol.compare([run, plain]))
    assert "| resnet_thin | GPCA | ours, 1 run |" in table
    assert "| resnet_thin | baseline | ours, 1 run |" in table
    assert "top-1 cls" in table
    assert "GT-known" not in table
    beside = wsol.compare([run], published="cifar10", backbones=["resnet50"])
    assert "cifar10 with 10,000 test images, not on cub" in beside.caption
    with pytest.raises(ConfigError, match="no published table 'cifr10'; did you mean 'cifar10'"):
        wsol.compare([run], published="cifr10")


@pytest.mark.parametrize(
    "command",
    [
        ["localize", "RUN", "BIRDS", "--out", "found"],
        ["visualize", "RUN"],
        ["report", "RUN"],
        ["analyze", "RUN"],
        ["export", "RUN", "--out", "model.onnx"],
        ["evaluate", "RUN", "--protocol", "gpca"],
        ["evaluate", "RUN", "--protocol", "all"],
    ],
    ids=lambda command: " ".join(command),
)
def test_what_needs_maps_is_refused_in_one_line(
    command: list[str], run: wsol.Run, birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    words = [{"RUN": str(run.path), "BIRDS": str(birds)}.get(word, word) for word in command]
    assert main(words) == ConfigError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert "no maps" in line or "finds no boxes" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eval.protocol": "gpca"}, "eval.protocol: gpca measures boxes, and a plain classifier finds none"),
        ({"train.freeze": "layer1"}, "train.freeze: .* has no named stages"),
        ({"train.sync_bn": True}, "train.sync_bn: torch would replace the batch norms"),
        ({"model.backbone": "tiny"}, "a config has a model or a network"),
        ({"network.attention": "gcpa"}, "unknown attention 'gcpa'; did you mean 'gpca'"),
        ({"network.depths": 8}, "network 'resnet_thin' takes no option 'depths'; did you mean 'depth'"),
        ({"data.pad": 32}, "data.pad: 32 is outside 0 to 31"),
    ],
)
def test_configs_that_make_no_sense(changes: dict[str, Any], message: str, birds: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        small_config(birds, changes=changes)


def test_another_network_drops_the_options_of_the_former(birds: Path) -> None:
    changed = small_config(birds, changes={"network.name": "densenet40"})
    assert changed.network is not None
    assert (changed.network.name, dict(changed.network.options)) == ("densenet40", {})
    assert changed.network.attention.name == "gpca"


def test_each_command_names_the_other(birds: Path, make_config: Any) -> None:
    with pytest.raises(ConfigError, match="which `wsol classify` trains"):
        wsol.train(small_config(birds))
    with pytest.raises(ConfigError, match="trained by `wsol train`"):
        wsol.classify(make_config())
    with pytest.raises(ConfigError, match="classes is for plain classifiers"):
        Config.read({"eval": {"protocol": "classes"}})


def test_a_batch_norm_hook_takes_part_in_the_gradient(birds: Path, tmp_path: Path) -> None:
    """The theta of every block moves."""
    trained = wsol.classify(
        small_config(birds, changes={"train.epochs": 1, "train.lr": 1.0}), tmp_path / "run"
    )
    row = trained.history[-1]
    moved = [row[f"network.layer{n}.0.bn2.attention.theta3"] for n in (1, 2, 3)]
    assert all(value != pytest.approx(1.0, abs=1e-9) for value in moved)


@pytest.mark.parametrize("stop_after", [2, 5])
def test_stopped_and_resumed_it_is_the_same_bit_for_bit(birds: Path, tmp_path: Path, stop_after: int) -> None:
    config = small_config(birds)
    train_run(config, tmp_path / "whole")
    train_run(config, tmp_path / "parts", stop_after=stop_after)
    train_run(config, tmp_path / "parts", resume=True)
    assert_same_runs(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.long
def test_killed_with_sigkill_and_resumed_it_is_the_same_bit_for_bit(
    birds: Path, tmp_path: Path, repository: Path
) -> None:
    config = small_config(birds, changes={"train.epochs": 4, "train.checkpoint_every": 1})
    path = write_config(tmp_path / "config.yaml", config)
    run = RunFolder(tmp_path / "killed")
    command = [sys.executable, "-m", "wsol", "classify", str(path), "--run-dir", str(run.path)]
    settings: dict[str, Any] = {
        "cwd": tmp_path,
        "env": {**os.environ, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1"},
        "text": True,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    process = subprocess.Popen(command, **settings)
    while not (run.metrics.exists() and len(read_csv(run.metrics)) >= 2):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert load_checkpoint(run.checkpoints.last)["epoch"] < 4, "killed too late to show anything"

    resumed = subprocess.run([*command, "--resume"], check=False, **settings)
    assert resumed.returncode == 0, resumed.stderr
    assert "continuing after" in resumed.stdout
    train_run(config, tmp_path / "whole")
    assert_same_runs(tmp_path / "whole", run.path)


@pytest.mark.long
def test_two_processes_train_one_network(birds: Path, tmp_path: Path) -> None:
    """Without batch norm's and the drawing order's differences the losses of an epoch are near to equal."""
    path = write_config(
        tmp_path / "config.yaml", small_config(birds, changes={"train.epochs": 1, "train.lr": 1e-6})
    )
    both = torchrun("-m", "wsol", "classify", path, "--run-dir", tmp_path / "two")
    output, errors = both.communicate(timeout=300)
    assert both.returncode == 0, errors
    assert "on 2 x cpu" in output
    alone = wsol.classify(path, tmp_path / "one")
    assert wsol.Run(tmp_path / "two").history[-1]["loss"] == pytest.approx(alone.history[-1]["loss"], rel=0.1)


@pytest.mark.long
def test_gpca_learns_as_well_as_the_plain_network(tmp_path: Path) -> None:
    """A CIFAR-size ResNet on painted birds: with GPCA in every block it is no worse, noise aside."""
    birds = wsol.paint_birds(tmp_path / "birds", species=4, train=100, test=60, size=64)
    top1 = {}
    for attention in ("identity", "gpca"):
        settings = {"train.epochs": 16, "train.batch_size": 16, "data.val_share": 0.0}
        config = small_config(birds, attention, {**settings, "train.schedule": "cosine"})
        trained = wsol.classify(config, tmp_path / attention)
        top1[attention] = wsol.evaluate(trained, device="cpu")["classes"]["top1_cls"]
    assert top1["identity"] > 45, "chance is 25 %"
    # Noise: two shares of 240 images near 60 % differ by up to 1.96 sqrt(2 0.6 0.4 / 240) = 9 points.
    assert top1["gpca"] > top1["identity"] - 9
