"""Threads of a training, and what the processor can do in bf16, and who is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from tests.helpers.configs import tiny_config
from tests.helpers.training import train_run
from wsol.cli import main
from wsol.cores import bf16_instructions
from wsol.errors import ConfigError
from wsol.runs.folder import RunFolder

X86_WITHOUT = {"avx512_f": True, "avx512_bf16": False, "amx_bf16": False, "architecture": "x86_64"}


def pretend(monkeypatch: pytest.MonkeyPatch, capabilities: Mapping[str, object] | None) -> None:
    """Let torch tell these capabilities; None for a torch that cannot tell."""
    if capabilities is None:
        monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    else:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)


@pytest.mark.parametrize(
    ("capabilities", "found"),
    [
        (X86_WITHOUT, ()),
        ({**X86_WITHOUT, "avx512_bf16": True}, ("avx512_bf16",)),
        ({**X86_WITHOUT, "avx512_bf16": True, "amx_bf16": True}, ("avx512_bf16", "amx_bf16")),
        ({"neon": True, "bf16": True, "sve_bf16": False}, ("bf16",)),
        ({"neon": True, "bf16": False}, ()),
        (None, None),
    ],
)
def test_the_instructions_for_bf16(
    monkeypatch: pytest.MonkeyPatch,
    capabilities: Mapping[str, object] | None,
    found: tuple[str, ...] | None,
) -> None:
    pretend(monkeypatch, capabilities)
    assert bf16_instructions() == found


@pytest.mark.parametrize(
    ("capabilities", "line"),
    [
        (X86_WITHOUT, "none: train.amp=bf16"),
        ({"avx512_bf16": True}, "avx512_bf16"),
        (None, "this torch cannot tell"),
    ],
)
def test_the_doctor_shows_them(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    capabilities: Mapping[str, object] | None,
    line: str,
) -> None:
    pretend(monkeypatch, capabilities)
    main(["doctor"])
    (shown,) = (row for row in capsys.readouterr().out.splitlines() if "CPU in bf16" in row)
    assert shown.split("CPU in bf16")[1].strip().startswith(line)


@pytest.mark.parametrize(
    ("capabilities", "amp", "notes"),
    [(X86_WITHOUT, "bf16", 1), (X86_WITHOUT, "none", 0), ({"amx_bf16": True}, "bf16", 0), (None, "bf16", 0)],
)
def test_training_in_bf16_without_them_is_noted_once(
    birds: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    capabilities: Mapping[str, object] | None,
    amp: str,
    notes: int,
) -> None:
    pretend(monkeypatch, capabilities)
    train_run(tiny_config(birds, train__epochs=1, train__amp=amp), tmp_path / "run", stop_after=1)
    assert capsys.readouterr().out.count("note: train.amp: bf16") == notes


def test_a_training_has_the_threads_that_it_asks_for(birds: Path, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    train_run(tiny_config(birds, train__epochs=1, train__threads=3), tmp_path / "run", stop_after=1)
    assert RunFolder(tmp_path / "run").read_json(RunFolder(tmp_path / "run").versions)["threads"] == 3
    assert torch.get_num_threads() == before
    with pytest.raises(ConfigError, match=r"train\.threads: 0 is less than one thread"):
        tiny_config(birds, train__threads=0)
