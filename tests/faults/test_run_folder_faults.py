"""Two processes on one run folder, folders in use, full disks, foreign folders."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from wsol.cli import main
from wsol.config import Config
from wsol.config_file import config_from_dict, dump_config
from wsol.errors import CheckpointError, RunFolderError
from wsol.runs.checkpoint import load_checkpoint
from wsol.runs.folder import RunFolder, load_run
from wsol.runs.lock import FolderLock
from wsol.runs.ranks import Ranks
from wsol.training.signals import StopSignal
from wsol.training.trainer import train

HOLD = """
import os, sys, time
from pathlib import Path
from wsol.runs.lock import FolderLock

lock = FolderLock(Path(sys.argv[1]))
if os.fork() == 0:          # as a loader worker: it outlives its parent for a while
    time.sleep(30)
    os._exit(0)
print("locked", flush=True)
time.sleep(60)
"""


@pytest.fixture
def config(birds: Path) -> Config:
    return config_from_dict(
        {
            "data": {"root": str(birds), "image_size": 64, "resize": 72, "workers": 0},
            "model": {"backbone": "tiny", "weights": "none", "head": {"name": "cam", "channels": 8}},
            "train": {"epochs": 1, "batch_size": 8, "device": "cpu"},
        }
    )


def go(config: Config, path: Path, resume: bool = False) -> int:
    return train(config, path, resume, Ranks(0, 1, torch.device("cpu")), StopSignal())


@contextmanager
def held(folder: Path, repository: Path) -> Iterator[subprocess.Popen[str]]:
    """The folder, locked by a process with a child."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=repository,
        start_new_session=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        yield holder
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()


def test_the_second_process_is_refused_until_the_first_dies(
    config: Config, tmp_path: Path, repository: Path
) -> None:
    with held(tmp_path, repository) as holder:
        for resume in (False, True):
            with pytest.raises(RunFolderError, match=rf"in use by process {holder.pid} on .* since "):
                go(config, tmp_path, resume)
        assert {p.name for p in tmp_path.iterdir()} == {FolderLock.NAME}, "the refused one writes nothing"
        holder.kill()
        holder.wait()
        # Its forked child still runs, and the lock is free all the same.
        assert go(config, tmp_path) == 0


def test_a_second_evaluation_is_refused_and_one_beside_training_is_not(
    config: Config, tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    go(config, tmp_path)
    predictions = tmp_path / "predictions"
    predictions.mkdir()
    with held(predictions, repository) as holder:
        assert main(["evaluate", str(tmp_path)]) == 2
        assert f"{predictions}: in use by process {holder.pid} on " in capsys.readouterr().err
        assert {p.name for p in predictions.iterdir()} == {FolderLock.NAME}, "the refused one writes nothing"
    with held(tmp_path, repository):
        assert main(["evaluate", str(tmp_path)]) == 0


def test_a_folder_that_is_not_empty_is_refused(config: Config, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(RunFolderError, match=r"not empty; continue that run with --resume"):
        go(config, tmp_path)
    assert {p.name for p in tmp_path.iterdir()} <= {"thesis.tex", FolderLock.NAME}


def test_files_of_others_are_never_touched(config: Config, tmp_path: Path) -> None:
    """--resume in a folder that holds no run neither begins one there nor clears anything away."""
    for name in ("notes.tmp", "thesis.tex"):
        (tmp_path / name).write_text("mine")
    with pytest.raises(RunFolderError, match=r"there are files but no run in it"):
        go(config, tmp_path, resume=True)
    assert {p.name for p in tmp_path.iterdir()} - {FolderLock.NAME} == {"notes.tmp", "thesis.tex"}
    go(config, tmp_path / "run")
    (tmp_path / "run" / "notes.tmp").write_text("mine")
    go(config, tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "notes.tmp").read_text() == "mine"


def test_a_kill_before_the_first_file_leaves_the_folder_free(config: Config, tmp_path: Path) -> None:
    (tmp_path / "config.yaml.77.tmp").write_text("hal")
    assert go(config, tmp_path) == 0
    assert not (tmp_path / "config.yaml.77.tmp").exists()


def test_a_file_in_the_place_of_the_folder(config: Config, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(RunFolderError, match="cannot be used"):
        go(config, tmp_path / "run")


def test_left_over_temporary_files_go_at_the_next_start(config: Config, tmp_path: Path) -> None:
    go(config, tmp_path)
    leftovers = [tmp_path / "metrics.csv.77.tmp", tmp_path / "checkpoints" / "last.ckpt.77.tmp"]
    for path in leftovers:
        path.write_text("half")
    go(config, tmp_path, resume=True)
    assert not any(p.exists() for p in leftovers)


@pytest.mark.slow
def test_a_disk_that_fills_up_ends_the_command_and_keeps_the_checkpoint(
    config: Config, tmp_path: Path, wsol: Callable[..., subprocess.Popen[str]]
) -> None:
    run = RunFolder(tmp_path / "run")
    go(config, run.path)
    before = run.checkpoints.last.read_bytes()
    path = tmp_path / "config.yaml"
    path.write_text(dump_config(config))
    limit = len(before) // 2
    process = wsol(
        "train",
        path,
        "--set=train.epochs=2",
        "--run-dir",
        run.path,
        "--resume",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "last.ckpt: could not be written: File too large; the former one is intact" in errors
    assert "Traceback" not in errors
    assert run.checkpoints.last.read_bytes() == before
    assert not list(run.checkpoints.folder.glob("*.tmp"))


def test_what_is_no_run_folder_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"not a run folder: it has no config\.yaml"):
        load_run(tmp_path)


def test_a_run_without_a_checkpoint_is_called_so(config: Config, tmp_path: Path) -> None:
    go(config, tmp_path)
    for path in RunFolder(tmp_path).checkpoints.folder.iterdir():
        path.unlink()
    with pytest.raises(RunFolderError, match="no checkpoint yet"):
        load_run(tmp_path)


@pytest.mark.parametrize("content", ["", "[1, 2]", '{"classes": 3}', "{"])
def test_a_damaged_data_record_is_called_so(config: Config, tmp_path: Path, content: str) -> None:
    go(config, tmp_path)
    (tmp_path / "data.json").write_text(content)
    with pytest.raises(RunFolderError, match=r"data\.json: not "):
        load_run(tmp_path)


def test_an_edited_config_that_asks_for_another_model_is_refused(config: Config, tmp_path: Path) -> None:
    go(config, tmp_path)
    with pytest.raises(CheckpointError, match=r"tiny, cam head, 4 classes.*head\.class_maps"):
        load_run(tmp_path, overrides=["model.head.channels=16"])


def test_a_damaged_best_gives_way_to_the_last(config: Config, tmp_path: Path) -> None:
    go(config, tmp_path)
    store = RunFolder(tmp_path).checkpoints
    store.best.write_bytes(store.last.read_bytes()[:-1])
    said: list[str] = []
    assert load_run(tmp_path, notice=said.append).checkpoint == store.last
    assert "best.ckpt: damaged" in said[0]
    assert load_checkpoint(store.last)["epoch"] == 1
