"""`train.amp: auto`: what it means on a machine, and that a run keeps it."""

from pathlib import Path

import pytest
import torch

from tests.helpers.configs import tiny_config
from tests.helpers.training import train_run
from wsol.run import Run
from wsol.training import precision
from wsol.training.precision import computes_in_bf16


def pretend(
    monkeypatch: pytest.MonkeyPatch, instructions: tuple[str, ...] | None, share: float = 0.5
) -> None:
    monkeypatch.setattr(precision, "bf16_instructions", lambda: instructions)
    monkeypatch.setattr(precision, "measured_bf16_share", lambda: share)


@pytest.mark.parametrize(
    ("instructions", "share", "amp"),
    [
        (("avx512_bf16",), 0.5, "bf16"),
        (("avx512_bf16",), 1.3, "none"),  # instructions that gain nothing
        ((), 0.5, "none"),
        (None, 0.5, "none"),
    ],
)
def test_auto_is_bf16_where_it_is_faster(
    birds: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    instructions: tuple[str, ...] | None,
    share: float,
    amp: str,
) -> None:
    pretend(monkeypatch, instructions, share)
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


def test_the_measurement_is_a_ratio_and_draws_nothing() -> None:
    before = torch.get_rng_state()
    with torch.no_grad():
        share = precision.measured_bf16_share()
    assert 0 < share < 1000
    assert torch.equal(before, torch.get_rng_state())
