"""Train in this process, stop where a test wants it, and compare runs bit for bit."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import torch

from wsol.config import Config
from wsol.runs.checkpoint import load_checkpoint
from wsol.runs.folder import RunFolder
from wsol.runs.history import TIME_COLUMNS, read_csv
from wsol.runs.ranks import Ranks
from wsol.training.signals import StopSignal
from wsol.training.trainer import train


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


def train_run(config: Config, path: Path, resume: bool = False, stop_after: int | None = None) -> int:
    """Train as one process on the CPU; returns the exit code."""
    stop = StopAfter(stop_after) if stop_after else StopSignal()
    return train(config, path, resume, Ranks.alone(), stop)


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
    """The newest checkpoints and the logs of two run folders are equal."""
    one, two = RunFolder(a), RunFolder(b)
    assert_same(load_checkpoint(one.checkpoints.last), load_checkpoint(two.checkpoints.last))
    assert_same(read_csv(one.metrics), read_csv(two.metrics))
