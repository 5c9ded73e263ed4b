"""A loader process that the system ends, as it does where memory is short."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from wsol.cli import main
from wsol.data.loader_faults import loader_faults_named
from wsol.errors import DataError


def end_the_first_child() -> None:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="no memory"), loader_faults_named():
        raise RuntimeError("no memory")
    with pytest.raises(DataError, match="fewer such processes") as caught, loader_faults_named():
        raise RuntimeError("DataLoader worker (pid 7)\n is killed by signal: Killed.")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the process by /proc")
def test_an_evaluation_that_loses_a_loader_process_says_so(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = trained / "config.yaml"
    config.write_text(config.read_text().replace("workers: 0", "workers: 1"))

    def lose(*_: object) -> None:
        end_the_first_child()
        signal.pause()  # torch's handler of SIGCHLD raises here

    monkeypatch.setattr("wsol.localization.predictor.look_at", lose)
    assert main(["evaluate", str(trained), "--device", "cpu"]) == 2
    assert "a process that reads images was ended by the system" in capsys.readouterr().err
    assert {p.name for p in (trained / "predictions").iterdir()} == {".lock"}
