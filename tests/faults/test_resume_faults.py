"""A run that was stopped and resumed is the run that was never stopped, bit for bit."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch
import yaml

from tests.helpers.configs import MakeConfig, tiny_config, write_config
from tests.helpers.training import assert_same_runs, train_run
from wsol.config import Config, Head
from wsol.config_file import config_from_dict, config_to_dict, load_config
from wsol.errors import CheckpointError, ConfigError, DataError, RunFolderError
from wsol.models.localizer import build_localizer
from wsol.registry import DROPS, HEADS, TRANSFORMS
from wsol.runs.checkpoint import load_checkpoint, save_checkpoint
from wsol.runs.folder import RunFolder
from wsol.runs.history import read_csv

RESUMED = ("adl", "dgdm", "danet", "bas", "acol", "spg", "has", "cutmix")


@pytest.mark.parametrize(
    ("method", "workers"),
    [
        *product(RESUMED, (0,)),
        *(pytest.param(name, 2, marks=pytest.mark.long) for name in ("adl", "dgdm", "danet")),
    ],
)
def test_stopped_in_the_middle_of_epochs(birds: Path, tmp_path: Path, method: str, workers: int) -> None:
    config = tiny_config(birds, method, data__workers=workers)
    assert train_run(config, tmp_path / "whole") == 0
    # Step 2 of 4, then the last step of the same epoch, then step 3 of the second epoch, then the end.
    for number, stop_after in enumerate((2, 2, 4)):
        code = train_run(config, tmp_path / "parts", resume=number > 0, stop_after=stop_after)
        assert code == 128 + signal.SIGTERM
    state = load_checkpoint(RunFolder(tmp_path / "parts").checkpoints.last)
    assert (state["epoch"], state["step"]) == (1, 3)
    assert train_run(config, tmp_path / "parts", resume=True) == 0
    assert_same_runs(tmp_path / "whole", tmp_path / "parts")


def test_every_head_drop_block_and_transform_is_resumed_above(birds: Path) -> None:
    """But for heads that learn from pixels, which `test_refine` resumes, or are fitted in one pass."""
    configs = [tiny_config(birds, method) for method in RESUMED]
    heads = [name for name in HEADS.entries() if not (Head.of(name).fitted or Head.of(name).guided)]
    assert {c.model.head.name for c in configs} >= set(heads)
    assert {c.model.drop.name for c in configs} >= set(DROPS.entries())
    assert {t.name for c in configs for t in c.train.transforms} == set(TRANSFORMS.entries())


@pytest.mark.parametrize("stop_after", [1, 2])
def test_a_measured_theta_resumes(birds: Path, tmp_path: Path, stop_after: int) -> None:
    attention = {"name": "gpca", "reading": "auto", "gain": True}
    config = tiny_config(birds, train__epochs=1, model__attention=attention)
    train_run(config, tmp_path / "whole")
    train_run(config, tmp_path / "parts", stop_after=stop_after)
    train_run(config, tmp_path / "parts", resume=True)
    assert_same_runs(tmp_path / "whole", tmp_path / "parts")
    (row,) = read_csv(RunFolder(tmp_path / "whole").metrics)
    assert {f"head.attention.{name}" for name in ("theta0", "theta1", "theta2", "theta3", "gain")} <= set(row)
    assert row["head.attention.theta1"] != pytest.approx(1, abs=1e-3), "measured, not the value before"


def test_the_comparison_can_fail(birds: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        train_run(tiny_config(birds, "adl", train__epochs=1, train__seed=seed), tmp_path / name)
    with pytest.raises(AssertionError):
        assert_same_runs(tmp_path / "a", tmp_path / "b")


@pytest.mark.long
def test_half_precision_resumes_with_its_scale(birds: Path, tmp_path: Path) -> None:
    config = tiny_config(birds, "adl", train__epochs=1, train__amp="fp16")
    train_run(config, tmp_path / "whole")
    train_run(config, tmp_path / "parts", stop_after=2)
    train_run(config, tmp_path / "parts", resume=True)
    assert_same_runs(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize("method", ["adl", "bas"])
def test_bf16_resumes(birds: Path, tmp_path: Path, method: str) -> None:
    config = tiny_config(birds, method, train__amp="bf16", train__channels_last=True)  # as configs/cub40
    train_run(config, tmp_path / "whole")
    train_run(config, tmp_path / "parts", stop_after=2)
    train_run(config, tmp_path / "parts", resume=True)
    assert_same_runs(tmp_path / "whole", tmp_path / "parts")
    plain = tiny_config(birds, method, train__channels_last=True)
    train_run(plain, tmp_path / "plain")
    with pytest.raises(AssertionError):
        assert_same_runs(tmp_path / "whole", tmp_path / "plain")  # it was bf16 that was resumed


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "workers", "freeze"),
    [
        *(("adl", 2, None), ("adl", 0, None), ("dgdm", 2, None), ("danet", 2, None), ("bas", 2, None)),
        *(("acol", 0, None), ("spg", 0, None), ("has", 0, None), ("cutmix", 0, None)),
        *(("adl", 0, "stage1"), ("bas", 0, "stage1")),
    ],
)
def test_the_whole_command_killed_with_sigkill(
    birds: Path,
    tmp_path: Path,
    method: str,
    workers: int,
    freeze: str | None,
    wsol: Callable[..., subprocess.Popen[str]],
) -> None:
    config = tiny_config(
        birds,
        method,
        data__workers=workers,
        train__epochs=4,
        train__checkpoint_every=1,
        train__freeze=freeze,
    )
    path = write_config(tmp_path / "config.yaml", config)
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
    train_run(config, tmp_path / "whole")
    assert_same_runs(tmp_path / "whole", run.path)


def test_a_damaged_last_is_resumed_from_the_one_before(
    birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny_config(birds, "adl")
    train_run(config, tmp_path / "whole")
    train_run(tiny_config(birds, "adl", train__epochs=1), tmp_path / "run", stop_after=3)
    train_run(tiny_config(birds, "adl", train__epochs=1), tmp_path / "run", resume=True)
    last = RunFolder(tmp_path / "run").checkpoints.last
    content = bytearray(last.read_bytes())
    content[len(content) // 2] ^= 4
    last.write_bytes(content)
    capsys.readouterr()
    train_run(config, tmp_path / "run", resume=True)
    assert "last.ckpt: damaged" in capsys.readouterr().out
    assert_same_runs(tmp_path / "whole", tmp_path / "run")


def test_resume_in_an_empty_folder_begins(birds: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert train_run(tiny_config(birds, "adl", train__epochs=1), tmp_path / "run", resume=True) == 0
    assert read_csv(RunFolder(tmp_path / "run").metrics)[-1]["epoch"] == 1


def test_resume_of_a_finished_run_changes_nothing(birds: Path, tmp_path: Path) -> None:
    config = tiny_config(birds, "adl", train__epochs=1)
    train_run(config, tmp_path)
    before = RunFolder(tmp_path).checkpoints.last.read_bytes()
    assert train_run(config, tmp_path, resume=True) == 0
    assert RunFolder(tmp_path).checkpoints.last.read_bytes() == before


def test_another_number_of_processes_is_noted(
    birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_run(tiny_config(birds, "adl", train__epochs=1), tmp_path)
    last = RunFolder(tmp_path).checkpoints.last
    state = load_checkpoint(last)
    save_checkpoint(last, {**state, "random": state["random"] * 2})  # as two ranks would have left it
    assert train_run(tiny_config(birds, "adl"), tmp_path, resume=True) == 0
    assert "2 processes before, 1 now" in capsys.readouterr().out


def test_a_checkpoint_of_another_model_is_refused(birds: Path, tmp_path: Path) -> None:
    config = tiny_config(birds, "adl", train__epochs=1)
    train_run(config, tmp_path)
    before = RunFolder(tmp_path).checkpoints.last.read_bytes()
    other = config_to_dict(config)
    other["model"]["backbone"] = "timm:resnet10t"
    with pytest.raises(CheckpointError) as error:
        train_run(config_from_dict(other), tmp_path, resume=True)
    assert "another model (tiny, adl, cam head, gpca, 4 classes)" in str(error.value)
    assert "than this one (timm:resnet10t, adl, cam head, gpca, 4 classes)" in str(error.value)
    assert "backbone.stages.stem.0.weight: " in str(error.value)
    assert RunFolder(tmp_path).checkpoints.last.read_bytes() == before


def test_another_number_of_classes_is_refused(birds: Path, tmp_path: Path) -> None:
    config = tiny_config(birds, "adl", train__epochs=1)
    train_run(config, tmp_path)
    fewer = config_to_dict(config)
    fewer["data"]["classes"] = [1, 2, 3]
    with pytest.raises(CheckpointError, match=r"4 classes.*3 classes.*\(4, .*\(3, "):
        train_run(config_from_dict(fewer), tmp_path, resume=True)


def test_another_recipe_is_refused_and_the_changes_are_named(birds: Path, tmp_path: Path) -> None:
    train_run(tiny_config(birds, "adl", train__epochs=1), tmp_path)
    with pytest.raises(ConfigError, match=r"train\.lr was 0\.02, is 0\.5"):
        train_run(tiny_config(birds, "adl", train__epochs=1, train__lr=0.5), tmp_path, resume=True)
    # What only says where, how long and how it runs may change.
    longer = tiny_config(birds, "adl", train__epochs=2, train__checkpoint_every=3)
    assert train_run(longer, tmp_path, resume=True) == 0
    assert load_config(tmp_path / "config.yaml") == longer
    before = (tmp_path / "config.yaml").read_text()
    with pytest.raises(ConfigError, match=r"train\.epochs 1: .* has 2 epochs already"):
        train_run(tiny_config(birds, "adl", train__epochs=1), tmp_path, resume=True)
    assert (tmp_path / "config.yaml").read_text() == before, "a refused continuation changes nothing"


def test_every_continuation_is_on_record(birds: Path, tmp_path: Path) -> None:
    train_run(tiny_config(birds, "adl", train__epochs=1), tmp_path)
    first = json.loads((tmp_path / "versions.json").read_text())
    train_run(tiny_config(birds, "adl", train__epochs=2), tmp_path, resume=True)
    train_run(tiny_config(birds, "adl", train__epochs=2), tmp_path, resume=True)
    record = json.loads((tmp_path / "versions.json").read_text())
    resumed = record.pop("resumed")
    assert record == first
    assert [r["torch"] for r in resumed] == [first["torch"]] * 2


def test_a_weights_file_may_move_but_not_change(birds: Path, tmp_path: Path) -> None:
    def config(weights: Path, epochs: int) -> Config:
        plain = config_to_dict(tiny_config(birds, "adl", train__epochs=epochs))
        plain["model"]["weights"] = str(weights)
        return config_from_dict(plain)

    torch.manual_seed(3)
    state = build_localizer(tiny_config(birds, "adl").model, classes=4).backbone.state_dict()
    torch.save({name.removeprefix("stages."): value for name, value in state.items()}, tmp_path / "a.pth")
    train_run(config(tmp_path / "a.pth", 2), tmp_path / "whole")
    train_run(config(tmp_path / "a.pth", 1), tmp_path / "run")
    (tmp_path / "a.pth").rename(tmp_path / "b.pth")
    assert train_run(config(tmp_path / "b.pth", 2), tmp_path / "run", resume=True) == 0
    assert_same_runs(tmp_path / "whole", tmp_path / "run")
    state = {name: value + 1 if value.is_floating_point() else value for name, value in state.items()}
    torch.save({name.removeprefix("stages."): value for name, value in state.items()}, tmp_path / "b.pth")
    torch.save(torch.load(tmp_path / "b.pth"), tmp_path / "c.pth")
    with pytest.raises(ConfigError, match=r"another config than the run's: model\.weights was "):
        train_run(config(tmp_path / "c.pth", 2), tmp_path / "run", resume=True)
    # Under the same name too: the recorded digest tells.
    with pytest.raises(CheckpointError, match=r"b\.pth: these are not the weights that .* SHA-256 was "):
        train_run(config(tmp_path / "b.pth", 2), tmp_path / "run", resume=True)


def test_a_checkpoint_without_a_part_is_refused(birds: Path, tmp_path: Path) -> None:
    train_run(tiny_config(birds, "adl", train__epochs=1), tmp_path)
    last = RunFolder(tmp_path).checkpoints.last
    state = load_checkpoint(last)
    save_checkpoint(last, {key: value for key, value in state.items() if key != "optimizer"})
    with pytest.raises(CheckpointError, match="it has no optimizer"):
        train_run(tiny_config(birds, "adl"), tmp_path, resume=True)


def test_a_damaged_record_of_the_data_is_called_so(birds: Path, tmp_path: Path) -> None:
    train_run(tiny_config(birds, "adl", train__epochs=1), tmp_path)
    (tmp_path / "data.json").write_text("{}")
    with pytest.raises(RunFolderError, match=r"data\.json: not what a run writes"):
        train_run(tiny_config(birds, "adl"), tmp_path, resume=True)


def test_other_data_is_refused(birds: Path, tmp_path: Path) -> None:
    train_run(tiny_config(birds, "adl", train__epochs=1), tmp_path / "run")
    copy = tmp_path / "birds"
    copy.mkdir()
    for item in birds.iterdir():
        (copy / item.name).symlink_to(item)
    boxes = copy / "bounding_boxes.txt"
    lines = boxes.read_text().splitlines()
    boxes.unlink()
    boxes.write_text("\n".join([f"{lines[0].split()[0]} 1 1 9 9", *lines[1:]]) + "\n")
    with pytest.raises(DataError, match="other data than the run's"):
        train_run(tiny_config(copy, "adl", train__epochs=1), tmp_path / "run", resume=True)


def test_a_config_file_of_the_run_trains_the_same_again(birds: Path, tmp_path: Path) -> None:
    config = tiny_config(birds, "adl", train__epochs=1)
    train_run(config, tmp_path / "a")
    again = config_from_dict(yaml.safe_load((tmp_path / "a" / "config.yaml").read_text()))
    assert again == config
    train_run(again, tmp_path / "b")
    assert_same_runs(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("left", ["previous", "best"])
def test_a_run_without_its_last_checkpoint_goes_on_from_what_is_left(
    left: str, trained: Path, make_config: MakeConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = RunFolder(trained).checkpoints
    path = getattr(store, left)
    epoch = load_checkpoint(path)["epoch"]
    for other in {store.last, store.previous, store.best} - {path}:
        other.unlink()
    capsys.readouterr()
    assert train_run(make_config(train__epochs=3), trained, resume=True) == 0
    output = capsys.readouterr().out
    assert f"last.ckpt: cannot be read: No such file or directory; using {path.name} instead" in output
    assert f"continuing after {epoch} epochs" in output
    assert epoch > 0
    train_run(make_config(train__epochs=3), tmp_path / "whole")
    assert_same_runs(tmp_path / "whole", trained)


def test_a_best_checkpoint_that_lacks_a_part_is_refused_with_the_reason(
    trained: Path, make_config: MakeConfig
) -> None:
    store = RunFolder(trained).checkpoints
    state = load_checkpoint(store.best)
    save_checkpoint(store.best, {key: value for key, value in state.items() if key != "optimizer"})
    store.last.unlink()
    store.previous.unlink()
    with pytest.raises(CheckpointError, match="it has no optimizer"):
        train_run(make_config(), trained, resume=True)


def test_a_log_without_any_checkpoint_is_not_overwritten(trained: Path, make_config: MakeConfig) -> None:
    folder = RunFolder(trained)
    for path in folder.checkpoints.folder.iterdir():
        path.unlink()
    before = folder.metrics.read_bytes()
    with pytest.raises(RunFolderError, match=r"metrics\.csv has 2 epochs, but none of the checkpoints"):
        train_run(make_config(), trained, resume=True)
    assert folder.metrics.read_bytes() == before


def test_a_kill_before_the_first_checkpoint_begins_again_and_says_so(
    trained: Path, make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(trained)
    for path in folder.checkpoints.folder.iterdir():
        path.unlink()
    folder.metrics.write_text("".join(folder.metrics.read_text().splitlines(keepends=True)[:2]))
    assert train_run(make_config(), trained, resume=True) == 0
    assert "stopped before its first checkpoint; it begins again at epoch 1" in capsys.readouterr().out


def test_another_number_of_threads_is_noted(
    trained: Path, make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train_run(make_config(), trained, resume=True) == 0
    assert "bit for bit" not in capsys.readouterr().out
    threads = torch.get_num_threads()
    versions = RunFolder(trained).versions
    record = json.loads(versions.read_text())
    record["resumed"][-1]["threads"] = threads + 1  # the newest continuation counts
    versions.write_text(json.dumps(record))
    assert train_run(make_config(), trained, resume=True) == 0
    note = f"note: {threads + 1} threads before, {threads} now: not the same bit for bit"
    assert note in capsys.readouterr().out


def test_plugins_are_on_record_and_a_changed_one_is_noted(
    make_config: MakeConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plugin = {"module": "my_heads", "file": "my_heads.py", "sha256": "a" * 64, "registered": ["head mine"]}
    monkeypatch.setattr("wsol.training.provenance.loaded", lambda: [plugin])
    train_run(make_config(train__epochs=1), tmp_path / "run")
    assert json.loads((tmp_path / "run" / "plugins.json").read_text()) == {"plugins": [plugin]}
    plugin["sha256"] = "b" * 64
    capsys.readouterr()
    train_run(make_config(train__epochs=1), tmp_path / "run", resume=True)
    assert "the plugin my_heads (my_heads.py) has changed since the run began" in capsys.readouterr().out
