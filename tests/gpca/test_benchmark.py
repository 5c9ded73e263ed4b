"""The runner of the benchmarks, and that the one of gpca compares like with like."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from gpca import GPCA, READINGS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """scripts/benchmark.py as a module; it puts the root on sys.path, which the fixture takes back."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    spec = importlib.util.spec_from_file_location("benchmark_runner", ROOT / "scripts" / "benchmark.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def section(runner: ModuleType) -> ModuleType:
    return importlib.import_module("scripts.benchmarks.gpca")


def test_sections_are_the_files_of_the_folder(runner: ModuleType) -> None:
    names = runner.section_names()
    assert "gpca" in names
    assert "timing" not in names


@pytest.mark.parametrize(
    ("value", "kind", "code", "word"),
    [
        (2.0, "at least", 0, "ok"),
        (1.0, "at least", 1, "BROKEN"),
        (2.0, "at most", 1, "BROKEN"),
        (1.0, "at most", 0, "ok"),
    ],
)
def test_a_broken_bound_is_an_exit_code(
    value: float,
    kind: str,
    code: int,
    word: str,
    runner: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ratio = runner.Ratio("this / that", value, 1.5, kind)
    monkeypatch.setattr(runner, "run_section", lambda name: [ratio])
    assert runner.main(["gpca"]) == code
    assert word in capsys.readouterr().out


def test_unknown_section_lists_the_known(runner: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        runner.main(["nothing"])
    assert "unknown section nothing; there are" in capsys.readouterr().err


def test_functions_take_turns(runner: ModuleType) -> None:
    timing = importlib.import_module("scripts.benchmarks.timing")
    calls: list[str] = []
    functions: dict[str, Callable[[], None]] = {name: lambda name=name: calls.append(name) for name in "ab"}  # type: ignore[misc]
    medians = timing.time_side_by_side(functions, rounds=2, seconds=0)
    assert calls == ["a", "b"] + ["a", "b"] * 2
    assert set(medians) == {"a", "b"}
    assert all(value > 0 for value in medians.values())


@pytest.mark.parametrize("reading", READINGS)
def test_both_naive_forms_give_the_same_masks_and_gradients(section: ModuleType, reading: Any) -> None:
    x: Tensor = section.smooth_maps(2, 12, 6)
    module = GPCA(12, reading=reading)
    module(x)  # measures theta, where the reading asks for that
    expected_gradient = expected = None
    for masks in (
        lambda x: module.compute_mask(x),
        lambda x: section.masks_by_autograd(x, module),
        lambda x: section.masks_by_separate_solves(x, module),
    ):
        leaf = x.clone().requires_grad_()
        mask = masks(leaf)
        (gradient,) = torch.autograd.grad(mask.square().sum(), leaf)
        expected = mask.detach() if expected is None else expected
        expected_gradient = gradient if expected_gradient is None else expected_gradient
        torch.testing.assert_close(mask.detach(), expected, rtol=0, atol=1e-10)
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-4, atol=1e-7)
