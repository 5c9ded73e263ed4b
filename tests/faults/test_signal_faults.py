"""SIGTERM and Ctrl-C: the step is finished and saved; a second signal ends the process at once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.configs import tiny_config, write_config
from wsol.runs.checkpoint import load_checkpoint
from wsol.runs.folder import RunFolder

NOTE_ONE = """
import os, time
from wsol.training.signals import StopSignal

with StopSignal() as stop:
    print("ready", flush=True)
    while stop.number is None:
        time.sleep(0.01)
    print("noted", stop.number, stop.exit_code, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_first_signal_is_noted_and_the_second_ends_at_once(
    number: signal.Signals, code: int, repository: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", NOTE_ONE], stdout=subprocess.PIPE, text=True, cwd=repository
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == f"noted {int(number)} {code}\n"
    started = time.monotonic()
    process.send_signal(number)
    assert process.wait(10) == -number
    assert time.monotonic() - started < 5


def test_the_former_handlers_come_back() -> None:
    from wsol.training.signals import StopSignal

    before = [signal.getsignal(s) for s in StopSignal.SIGNALS]
    with StopSignal() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.number == signal.SIGTERM
    assert [signal.getsignal(s) for s in StopSignal.SIGNALS] == before


@pytest.mark.parametrize(("number", "code", "workers"), [(signal.SIGTERM, 143, 0), (signal.SIGINT, 130, 2)])
@pytest.mark.long
def test_the_whole_command_saves_and_leaves(
    number: signal.Signals,
    code: int,
    workers: int,
    birds: Path,
    tmp_path: Path,
    wsol: Callable[..., subprocess.Popen[str]],
) -> None:
    config = tiny_config(birds, "adl", data__workers=workers, train__epochs=100_000)
    path = write_config(tmp_path / "config.yaml", config)
    run = RunFolder(tmp_path / "run")
    process = wsol("train", path, "--run-dir", run.path, start_new_session=True)
    while not run.checkpoints.last.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    before = load_checkpoint(run.checkpoints.last)
    # To the whole group, as a terminal's Ctrl-C and torchrun's stop are: the loader workers share it.
    os.killpg(process.pid, number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    assert "--resume continues there" in output
    # The checkpoint lies exactly where the command says that it stopped, and never behind the one before.
    after = load_checkpoint(run.checkpoints.last)
    stopped = re.search(r"stopped after (?:step (\d+) of )?epoch (\d+);", output)
    assert stopped is not None, output
    said = (int(stopped[2]) - 1, int(stopped[1])) if stopped[1] else (int(stopped[2]), 0)
    assert (after["epoch"], after["step"]) == said
    assert said >= (before["epoch"], before["step"])
    assert run.curves.exists()
