"""`train.amp: auto`: what it means on a machine, and that a run keeps it."""

from pathlib import Path

import pytest
import torch

from tests.helpers.configs import tiny_config
from tests.helpers.training import train_run
from wsol.run import Run
from wsol.training import precision
from wsol.training.precision import computes_in_bf16


def pretend(monkeypatch: pytest.MonkeyPatch, instructions: tuple[str, ...] | None) -> None:
    monkeypatch.setattr(precision, "bf16_instructions", lambda: instructions)


@pytest.mark.parametrize(("instructions", "amp"), [(("avx512_bf16",), "bf16"), ((), "none"), (None, "none")])
def test_auto_is_bf16_where_the_processor_computes_in_it(
    birds: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    instructions: tuple[str, ...] | None,
    amp: str,
) -> None:
    pretend(monkeypatch, instructions)
    train_run(tiny_config(birds, train__epochs=1, train__amp="auto"), tmp_path / "run", stop_after=1)
    assert Run(tmp_path / "run").config.train.amp == amp


def test_a_run_keeps_its_precision_on_another_processor(
    birds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny_config(birds, train__epochs=1, train__amp="auto")
    pretend(monkeypatch, ("amx_bf16",))
    train_run(config, tmp_path / "run", stop_after=1)
    pretend(monkeypatch, ())
    train_run(config, tmp_path / "run", resume=True)
    assert Run(tmp_path / "run").config.train.amp == "bf16"
    assert "bf16 is slow on this processor" in capsys.readouterr().out


@pytest.mark.parametrize("supported", [True, False])
def test_a_gpu_is_asked_itself(monkeypatch: pytest.MonkeyPatch, supported: bool) -> None:
    pretend(monkeypatch, ())
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported)
    assert computes_in_bf16(torch.device("cuda")) is supported
