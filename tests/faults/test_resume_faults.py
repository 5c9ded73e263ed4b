"""A run that was stopped and resumed is the run that was never stopped, bit for bit."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from wsol.config import Config
from wsol.config_file import config_from_dict, config_to_dict, dump_config, load_config
from wsol.errors import CheckpointError, ConfigError, DataError, RunFolderError
from wsol.models.localizer import build_localizer
from wsol.runs.checkpoint import load_checkpoint, save_checkpoint
from wsol.runs.folder import RunFolder
from wsol.runs.ranks import Ranks
from wsol.training.log import TIME_COLUMNS, read_csv
from wsol.training.signals import StopSignal
from wsol.training.trainer import train

METHODS: dict[str, dict[str, Any]] = {
    "adl": {"drop": "adl", "attention": "gpca"},
    "dgdm": {"drop": "dgdm", "attention": "srp"},
    "danet": {"head": {"name": "danet", "channels": 8, "maps_per_class": 2, "levels": ["species", "family"]}},
}


class StopAfter(StopSignal):
    """As if SIGTERM arrived during the given step of this process."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self._left = step

    @property
    def number(self) -> int | None:
        self._left -= 1
        return signal.SIGTERM if self._left <= 0 else None

    @number.setter
    def number(self, value: int | None) -> None:
        pass


def make_config(birds: Path, method: str = "adl", workers: int = 0, **train_settings: Any) -> Config:
    return config_from_dict(
        {
            "data": {
                "root": str(birds),
                "image_size": 64,
                "resize": 72,
                "val_share": 0.2,
                "workers": workers,
            },
            "model": {
                "backbone": "tiny",
                "weights": "none",
                "head": {"name": "cam", "channels": 8},
                **METHODS[method],
            },
            "train": {"epochs": 2, "batch_size": 8, "lr": 0.02, "device": "cpu", **train_settings},
        }
    )


def go(config: Config, path: Path, resume: bool = False, stop_after: int | None = None) -> int:
    stop = StopAfter(stop_after) if stop_after else StopSignal()
    return train(config, path, resume, Ranks(0, 1, torch.device("cpu")), stop)


def assert_same(a: Any, b: Any, path: str = "") -> None:
    """Equal to the last bit, the figures that measure time aside."""
    assert type(a) is type(b), path
    if isinstance(a, dict):
        assert set(a) == set(b), path
        for key in set(a) - {*TIME_COLUMNS, "seconds"}:
            assert_same(a[key], b[key], f"{path}/{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{path}/{i}")
    elif isinstance(a, torch.Tensor):
        assert torch.equal(a, b), path
    else:
        assert a == b, path


def assert_same_runs(a: Path, b: Path) -> None:
    one, two = RunFolder(a), RunFolder(b)
    assert_same(load_checkpoint(one.checkpoints.last), load_checkpoint(two.checkpoints.last))
    assert_same(read_csv(one.metrics), read_csv(two.metrics))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("method", METHODS)
def test_stopped_in_the_middle_of_epochs(birds: Path, tmp_path: Path, method: str, workers: int) -> None:
    config = make_config(birds, method, workers)
    assert go(config, tmp_path / "whole") == 0
    # Step 2 of 4, then the last step of the same epoch, then step 3 of the second epoch, then the end.
    for number, stop_after in enumerate((2, 2, 4)):
        code = go(config, tmp_path / "parts", resume=number > 0, stop_after=stop_after)
        assert code == 128 + signal.SIGTERM
    state = load_checkpoint(RunFolder(tmp_path / "parts").checkpoints.last)
    assert (state["epoch"], state["step"]) == (1, 3)
    assert go(config, tmp_path / "parts", resume=True) == 0
    assert_same_runs(tmp_path / "whole", tmp_path / "parts")


def test_the_comparison_can_fail(birds: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        go(make_config(birds, epochs=1, seed=seed), tmp_path / name)
    with pytest.raises(AssertionError):
        assert_same_runs(tmp_path / "a", tmp_path / "b")


def test_half_precision_resumes_with_its_scale(birds: Path, tmp_path: Path) -> None:
    config = make_config(birds, epochs=1, amp="fp16")
    go(config, tmp_path / "whole")
    go(config, tmp_path / "parts", stop_after=2)
    go(config, tmp_path / "parts", resume=True)
    assert_same_runs(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.slow
@pytest.mark.parametrize(("method", "workers"), [("adl", 0), ("dgdm", 2), ("danet", 2)])
def test_the_whole_command_killed_with_sigkill(
    birds: Path, tmp_path: Path, method: str, workers: int, wsol: Callable[..., subprocess.Popen[str]]
) -> None:
    config = make_config(birds, method, workers, epochs=4, checkpoint_every=1)
    path = tmp_path / "config.yaml"
    path.write_text(dump_config(config))
    run = RunFolder(tmp_path / "killed")
    process = wsol("train", path, "--run-dir", run.path)
    while not (run.metrics.exists() and len(read_csv(run.metrics)) >= 2):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert load_checkpoint(run.checkpoints.last)["epoch"] < 4, "killed too late to show anything"

    resumed = wsol("train", path, "--run-dir", run.path, "--resume")
    output, errors = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, errors
    assert "continuing after" in output
    go(config, tmp_path / "whole")
    assert_same_runs(tmp_path / "whole", run.path)


def test_a_damaged_last_is_resumed_from_the_one_before(
    birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = make_config(birds)
    go(config, tmp_path / "whole")
    go(make_config(birds, epochs=1), tmp_path / "run", stop_after=3)
    go(make_config(birds, epochs=1), tmp_path / "run", resume=True)
    last = RunFolder(tmp_path / "run").checkpoints.last
    content = bytearray(last.read_bytes())
    content[len(content) // 2] ^= 4
    last.write_bytes(content)
    capsys.readouterr()
    go(config, tmp_path / "run", resume=True)
    assert "last.ckpt: damaged" in capsys.readouterr().out
    assert_same_runs(tmp_path / "whole", tmp_path / "run")


def test_resume_in_an_empty_folder_begins(birds: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert go(make_config(birds, epochs=1), tmp_path / "run", resume=True) == 0
    assert read_csv(RunFolder(tmp_path / "run").metrics)[-1]["epoch"] == 1


def test_resume_of_a_finished_run_changes_nothing(birds: Path, tmp_path: Path) -> None:
    config = make_config(birds, epochs=1)
    go(config, tmp_path)
    before = RunFolder(tmp_path).checkpoints.last.read_bytes()
    assert go(config, tmp_path, resume=True) == 0
    assert RunFolder(tmp_path).checkpoints.last.read_bytes() == before


def test_another_number_of_processes_is_noted(
    birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    go(make_config(birds, epochs=1), tmp_path)
    last = RunFolder(tmp_path).checkpoints.last
    state = load_checkpoint(last)
    save_checkpoint(last, {**state, "random": state["random"] * 2})  # as two ranks would have left it
    assert go(make_config(birds), tmp_path, resume=True) == 0
    assert "2 processes before, 1 now" in capsys.readouterr().out


def test_a_checkpoint_of_another_model_is_refused(birds: Path, tmp_path: Path) -> None:
    config = make_config(birds, epochs=1)
    go(config, tmp_path)
    before = RunFolder(tmp_path).checkpoints.last.read_bytes()
    other = config_to_dict(config)
    other["model"]["backbone"] = "timm:resnet10t"
    with pytest.raises(CheckpointError) as error:
        go(config_from_dict(other), tmp_path, resume=True)
    assert "another model (tiny, adl, cam head, gpca, 4 classes)" in str(error.value)
    assert "than this one (timm:resnet10t, adl, cam head, gpca, 4 classes)" in str(error.value)
    assert "backbone.stages.stem.0.weight: " in str(error.value)
    assert RunFolder(tmp_path).checkpoints.last.read_bytes() == before


def test_another_number_of_classes_is_refused(birds: Path, tmp_path: Path) -> None:
    config = make_config(birds, epochs=1)
    go(config, tmp_path)
    fewer = config_to_dict(config)
    fewer["data"]["classes"] = [1, 2, 3]
    with pytest.raises(CheckpointError, match=r"4 classes.*3 classes.*\(4, .*\(3, "):
        go(config_from_dict(fewer), tmp_path, resume=True)


def test_another_recipe_is_refused_and_the_changes_are_named(birds: Path, tmp_path: Path) -> None:
    go(make_config(birds, epochs=1), tmp_path)
    with pytest.raises(ConfigError, match=r"train\.lr was 0\.02, is 0\.5"):
        go(make_config(birds, epochs=1, lr=0.5), tmp_path, resume=True)
    # What only says where, how long and how it runs may change.
    longer = make_config(birds, epochs=2, checkpoint_every=3)
    assert go(longer, tmp_path, resume=True) == 0
    assert load_config(tmp_path / "config.yaml") == longer
    with pytest.raises(ConfigError, match=r"train\.epochs 1: .* has 2 epochs already"):
        go(make_config(birds, epochs=1), tmp_path, resume=True)


def test_every_continuation_is_on_record(birds: Path, tmp_path: Path) -> None:
    go(make_config(birds, epochs=1), tmp_path)
    first = json.loads((tmp_path / "versions.json").read_text())
    go(make_config(birds, epochs=2), tmp_path, resume=True)
    go(make_config(birds, epochs=2), tmp_path, resume=True)
    record = json.loads((tmp_path / "versions.json").read_text())
    resumed = record.pop("resumed")
    assert record == first
    assert [r["torch"] for r in resumed] == [first["torch"]] * 2


def test_a_weights_file_may_move_but_not_change(birds: Path, tmp_path: Path) -> None:
    def config(weights: Path, epochs: int) -> Config:
        plain = config_to_dict(make_config(birds, epochs=epochs))
        plain["model"]["weights"] = str(weights)
        return config_from_dict(plain)

    torch.manual_seed(3)
    state = build_localizer(make_config(birds).model, classes=4).backbone.state_dict()
    torch.save({name.removeprefix("stages."): value for name, value in state.items()}, tmp_path / "a.pth")
    go(config(tmp_path / "a.pth", 2), tmp_path / "whole")
    go(config(tmp_path / "a.pth", 1), tmp_path / "run")
    (tmp_path / "a.pth").rename(tmp_path / "b.pth")
    assert go(config(tmp_path / "b.pth", 2), tmp_path / "run", resume=True) == 0
    assert_same_runs(tmp_path / "whole", tmp_path / "run")
    state = {name: value + 1 if value.is_floating_point() else value for name, value in state.items()}
    torch.save({name.removeprefix("stages."): value for name, value in state.items()}, tmp_path / "b.pth")
    torch.save(torch.load(tmp_path / "b.pth"), tmp_path / "c.pth")
    with pytest.raises(ConfigError, match=r"another config than the run's: model\.weights was "):
        go(config(tmp_path / "c.pth", 2), tmp_path / "run", resume=True)


def test_a_checkpoint_without_a_part_is_refused(birds: Path, tmp_path: Path) -> None:
    go(make_config(birds, epochs=1), tmp_path)
    last = RunFolder(tmp_path).checkpoints.last
    state = load_checkpoint(last)
    save_checkpoint(last, {key: value for key, value in state.items() if key != "optimizer"})
    with pytest.raises(CheckpointError, match="it has no optimizer"):
        go(make_config(birds), tmp_path, resume=True)


def test_a_damaged_record_of_the_data_is_called_so(birds: Path, tmp_path: Path) -> None:
    go(make_config(birds, epochs=1), tmp_path)
    (tmp_path / "data.json").write_text("{}")
    with pytest.raises(RunFolderError, match=r"data\.json: not what a run writes"):
        go(make_config(birds), tmp_path, resume=True)


def test_other_data_is_refused(birds: Path, tmp_path: Path) -> None:
    go(make_config(birds, epochs=1), tmp_path / "run")
    copy = tmp_path / "birds"
    copy.mkdir()
    for item in birds.iterdir():
        (copy / item.name).symlink_to(item)
    boxes = copy / "bounding_boxes.txt"
    lines = boxes.read_text().splitlines()
    boxes.unlink()
    boxes.write_text("\n".join([f"{lines[0].split()[0]} 1 1 9 9", *lines[1:]]) + "\n")
    with pytest.raises(DataError, match="other data than the run's"):
        go(make_config(copy, epochs=1), tmp_path / "run", resume=True)


def test_a_config_file_of_the_run_trains_the_same_again(birds: Path, tmp_path: Path) -> None:
    config = make_config(birds, epochs=1)
    go(config, tmp_path / "a")
    again = config_from_dict(yaml.safe_load((tmp_path / "a" / "config.yaml").read_text()))
    assert again == config
    go(again, tmp_path / "b")
    assert_same_runs(tmp_path / "a", tmp_path / "b")
