"""A loss that is no number: the step is not taken, and the message says where it happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from torch import Tensor

from tests.helpers.configs import tiny_config, write_config
from wsol.cli import main
from wsol.models.localizer import Localizer
from wsol.records import LocalizerOutput
from wsol.runs.folder import RunFolder
from wsol.training.train_step import TrainStep


@pytest.fixture
def path(birds: Path, tmp_path: Path) -> Path:
    """A config file."""
    config = tiny_config(birds, data__val_share=0.0, train__epochs=3, train__lr=0.01)
    return write_config(tmp_path / "config.yaml", config)


Loss = Callable[[Tensor], Tensor]
BAD_LOSSES: dict[str, Loss] = {
    "nan": lambda logits: logits.sum() * float("nan"),
    "inf": lambda logits: logits.sum() * float("inf"),
    # Its value is 0, its gradient is not finite.
    "infinite gradient": lambda logits: (logits * 0).abs().sum().sqrt() * 1e30,
}


@pytest.mark.parametrize("kind", BAD_LOSSES)
def test_the_step_is_not_taken(
    kind: str,
    birds: Path,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = RunFolder(tmp_path / "run")
    assert main(["train", str(path), "--run-dir", str(run.path), "--set=train.epochs=1"]) == 0
    before = run.checkpoints.last.read_bytes()

    calls = {"loss": 0, "update": 0}
    good_loss, good_update = Localizer.loss, TrainStep.update

    def loss(self: Localizer, output: LocalizerOutput, labels: Tensor) -> dict[str, Tensor]:
        calls["loss"] += 1
        if calls["loss"] == 3:
            return {"classification": BAD_LOSSES[kind](output.logits)}
        return good_loss(self, output, labels)

    def update(self: TrainStep) -> None:
        calls["update"] += 1
        good_update(self)

    monkeypatch.setattr(Localizer, "loss", loss)
    monkeypatch.setattr(TrainStep, "update", update)
    capsys.readouterr()
    assert main(["train", str(path), "--run-dir", str(run.path), "--resume"]) == 3
    assert calls == {"loss": 3, "update": 2}
    assert run.checkpoints.last.read_bytes() == before

    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    record = json.loads((run.path / "diverged.json").read_text())
    assert (record["epoch"], record["step"], record["lr"]) == (2, 3, 0.01)
    assert len(record["images"]) == 8
    assert all((birds / "images" / name).is_file() for name in record["images"])
    assert record["images"][0] in errors
    assert "step 3 of epoch 2" in errors
    assert "at lr 0.01" in errors
    assert "gradient norm" in errors

    monkeypatch.undo()
    assert main(["train", str(path), "--run-dir", str(run.path), "--resume"]) == 0
    assert not (run.path / "diverged.json").exists(), "it told of the attempt before"


@pytest.mark.long
def test_half_precision_that_never_recovers_ends_the_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Skipping steps mends a scale that is too large, not a gradient that is infinite at any scale."""

    def loss(self: Localizer, output: LocalizerOutput, labels: Tensor) -> dict[str, Tensor]:
        return {"classification": BAD_LOSSES["infinite gradient"](output.logits.float())}

    monkeypatch.setattr(Localizer, "loss", loss)
    arguments = ["--set=train.epochs=30", "--set=train.amp=fp16", "--run-dir", str(tmp_path / "run")]
    assert main(["train", str(path), *arguments]) == 3
    assert "gradient norm nan" in capsys.readouterr().err


def test_a_rate_that_is_far_too_large_ends_the_run(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["train", str(path), "--run-dir", str(tmp_path / "run"), "--set", "train.lr=1000"])
    assert code == 3
    assert "try a new run with a smaller lr" in capsys.readouterr().err
