"""Two processes on one run folder, folders in use, full disks, foreign folders."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.configs import MakeConfig, write_config
from tests.helpers.training import train_run
from wsol.cli import main
from wsol.config import Config
from wsol.errors import CheckpointError, ConfigError, DataError, RunFolderError, WsolError
from wsol.notices import WsolNote
from wsol.run import Run
from wsol.runs.checkpoint import load_checkpoint
from wsol.runs.folder import RunFolder
from wsol.runs.lock import FolderLock

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
def config(make_config: MakeConfig) -> Config:
    return make_config(data__val_share=0.0, train__epochs=1)


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
                train_run(config, tmp_path, resume)
        assert {p.name for p in tmp_path.iterdir()} == {FolderLock.NAME}, "the refused one writes nothing"
        holder.kill()
        holder.wait()
        # Its forked child still runs, and the lock is free all the same.
        assert train_run(config, tmp_path) == 0


def test_the_same_process_is_refused_too(config: Config, tmp_path: Path, repository: Path) -> None:
    """A notebook with two threads; and the refusal does not free the folder for others."""
    train_run(config, tmp_path)
    first = RunFolder(tmp_path)
    first.claim(resume=True)
    refused = rf"in use by this very process \(process {os.getpid()} on .* since "
    with pytest.raises(RunFolderError, match=refused):
        train_run(config, tmp_path, resume=True)
    claim = "from pathlib import Path; from wsol.runs.lock import FolderLock; FolderLock(Path({!r}))"
    other = [sys.executable, "-c", claim.format(str(tmp_path))]
    beside = subprocess.run(other, cwd=repository, capture_output=True, text=True, check=False)
    assert f"in use by process {os.getpid()} on " in beside.stderr
    first.release()
    assert train_run(config, tmp_path, resume=True) == 0
    assert subprocess.run(other, cwd=repository, check=False).returncode == 0


def test_a_second_evaluation_is_refused_and_one_beside_training_is_not(
    config: Config, tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_run(config, tmp_path)
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
        train_run(config, tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"thesis.tex"}


def test_files_of_others_are_never_touched(config: Config, tmp_path: Path) -> None:
    """--resume in a folder that holds no run neither begins one there nor clears anything away."""
    for name in ("notes.tmp", "thesis.tex"):
        (tmp_path / name).write_text("mine")
    with pytest.raises(RunFolderError, match=r"there are files but no run in it"):
        train_run(config, tmp_path, resume=True)
    assert {p.name for p in tmp_path.iterdir()} == {"notes.tmp", "thesis.tex"}
    run = RunFolder(tmp_path / "run")
    train_run(config, run.path)
    names = ("notes.tmp", "thesis.2024.tmp", "results.1234.tmp", ".wsol-notes.tmp")
    for folder in (run.path, run.checkpoints.folder):
        for name in names:
            (folder / name).write_text("mine")
    train_run(config, run.path, resume=True)
    for folder in (run.path, run.checkpoints.folder):
        for name in names:
            assert (folder / name).read_text() == "mine"


def test_a_kill_before_the_first_file_leaves_the_folder_free(config: Config, tmp_path: Path) -> None:
    (tmp_path / "config.yaml.77.tmp").write_text("hal")
    assert train_run(config, tmp_path) == 0
    assert not (tmp_path / "config.yaml.77.tmp").exists()


def test_a_file_in_the_place_of_the_folder(config: Config, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(RunFolderError, match="cannot be used"):
        train_run(config, tmp_path / "run")


def test_left_over_temporary_files_go_at_the_next_start(config: Config, tmp_path: Path) -> None:
    train_run(config, tmp_path)
    draft = f".wsol-{'0a' * 16}.tmp"
    leftovers = [
        *(tmp_path / "metrics.csv.77.tmp", tmp_path / "checkpoints" / "last.ckpt.77.tmp"),
        *(tmp_path / draft, tmp_path / "checkpoints" / draft, tmp_path / f"{draft}.png"),
    ]
    for path in leftovers:
        path.write_text("half")
    train_run(config, tmp_path, resume=True)
    assert not any(p.exists() for p in leftovers)


@pytest.mark.long
def test_a_disk_that_fills_up_ends_the_command_and_keeps_the_checkpoint(
    config: Config, tmp_path: Path, wsol: Callable[..., subprocess.Popen[str]]
) -> None:
    run = RunFolder(tmp_path / "run")
    train_run(config, run.path)
    before = run.checkpoints.last.read_bytes()
    path = write_config(tmp_path / "config.yaml", config)
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
    assert not list(run.checkpoints.folder.glob(".wsol-*"))


def test_a_full_disk_leaves_no_half_predictions(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.posix_fallocate", full)
        assert main(["evaluate", str(trained)]) == 2
    assert "predictions/test-resize: cannot be written: No space left on device" in capsys.readouterr().err
    assert everything(trained / "predictions") == {FolderLock.NAME}


def test_a_lock_that_cannot_be_written_leaves_nothing(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        with pytest.raises(RunFolderError, match="cannot be used: No space left on device"):
            train_run(config, tmp_path / "run")
    assert everything(tmp_path) == set()
    assert train_run(config, tmp_path / "run") == 0, "the lock is not held by what failed"


def everything(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


def test_a_failed_start_leaves_nothing(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs" / "new"
    with pytest.raises(CheckpointError, match="no file"):
        train_run(make_config(model__weights="nowhere.pth"), path)
    with pytest.raises(DataError):
        train_run(make_config(data__root=str(tmp_path / "no data")), path)
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(ConfigError, match="sync_bn"):
        train_run(make_config(train__sync_bn=True), path)

    def fail(*_: object) -> None:
        raise WsolError("as late as possible")

    with monkeypatch.context() as patch:
        patch.setattr("wsol.training.log.RunLog.start", fail)
        with pytest.raises(WsolError, match="as late as possible"):
            train_run(make_config(), path)
    assert everything(tmp_path) == set()
    # With --resume, as a job queue starts it.
    with pytest.raises(CheckpointError, match="no file"):
        train_run(make_config(model__weights="nowhere.pth"), path, resume=True)
    assert everything(tmp_path) == set()


def test_a_failed_start_keeps_what_was_there(make_config: MakeConfig, trained: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    with pytest.raises(CheckpointError, match="no file"):
        train_run(make_config(model__weights="nowhere.pth"), mine)
    assert mine.is_dir()
    assert everything(mine) == set()
    before = everything(trained)
    with pytest.raises(CheckpointError, match="no file"):
        train_run(make_config(model__weights="nowhere.pth"), trained, resume=True)
    assert everything(trained) == before
    assert train_run(make_config(), trained, resume=True) == 0, "the lock is free again"


def test_links_in_a_folder_that_came_from_someone_else_are_not_followed(
    make_config: MakeConfig, trained: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "thesis.tex"
    victim.write_text("mine")
    run = RunFolder(trained)
    run.metrics.unlink()
    for path in (run.metrics, run.diverged, run.checkpoints.folder / "next.ckpt"):
        path.symlink_to(victim)
    run.checkpoints.previous.unlink()
    run.checkpoints.previous.symlink_to(victim)
    assert train_run(make_config(train__epochs=3), trained, resume=True) == 0
    assert not run.metrics.is_symlink()
    assert not run.checkpoints.previous.is_symlink()
    assert victim.read_text() == "mine"


def test_a_lock_that_is_a_link_is_refused(make_config: MakeConfig, trained: Path, tmp_path: Path) -> None:
    victim = tmp_path / "thesis.tex"
    victim.write_text("mine")
    (trained / ".lock").unlink()
    (trained / ".lock").symlink_to(victim)
    with pytest.raises(RunFolderError, match=r"\.lock: is a link"):
        train_run(make_config(), trained, resume=True)
    (trained / "predictions").mkdir()
    (trained / "predictions" / ".lock").symlink_to(victim)
    with pytest.raises(RunFolderError, match=r"\.lock: is a link"):
        RunFolder(trained).claim_predictions()
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("name", ["checkpoints", "tensorboard"])
def test_a_folder_of_the_run_that_is_a_link_is_refused(
    name: str, make_config: MakeConfig, trained: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (trained / name).rename(elsewhere)
    (trained / name).symlink_to(elsewhere)
    before = everything(elsewhere)
    with pytest.raises(RunFolderError, match=rf"{name}: is a link"):
        train_run(make_config(train__epochs=3), trained, resume=True)
    assert everything(elsewhere) == before


def test_predictions_that_are_a_link_are_refused(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (trained / "predictions").symlink_to(elsewhere)
    assert main(["evaluate", str(trained)]) == 2
    assert "predictions: is a link" in capsys.readouterr().err
    assert everything(elsewhere) == set()


def test_scores_are_not_written_through_links(trained: Path, tmp_path: Path) -> None:
    victim = tmp_path / "thesis.tex"
    victim.write_text("mine")
    for name in ("scores.json", "scores.json.partial"):
        (trained / name).symlink_to(victim)
    assert main(["evaluate", str(trained)]) == 0
    assert victim.read_text() == "mine"
    assert not (trained / "scores.json").is_symlink()


def test_json_at_a_device_or_a_folder_is_refused(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(trained), "--held-out", "0"]) == 0
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for target in (tmp_path / "folder", tmp_path / "pipe"):
        capsys.readouterr()
        assert main(["evaluate", str(trained), "--reuse", "--json", str(target)]) == 2
        assert f"{target}: could not be written: " in capsys.readouterr().err
    assert everything(tmp_path / "folder") == set()
    assert (tmp_path / "pipe").is_fifo()


def test_what_is_no_run_folder_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"not a run folder: it has no config\.yaml"):
        Run(tmp_path)


def test_a_run_without_a_checkpoint_is_called_so(config: Config, tmp_path: Path) -> None:
    train_run(config, tmp_path)
    for path in RunFolder(tmp_path).checkpoints.folder.iterdir():
        path.unlink()
    with pytest.raises(RunFolderError, match="no checkpoint yet"):
        Run(tmp_path).localizer("cpu")


@pytest.mark.parametrize("content", ["", "[1, 2]", '{"classes": 3}', "{"])
def test_a_damaged_data_record_is_called_so(config: Config, tmp_path: Path, content: str) -> None:
    train_run(config, tmp_path)
    (tmp_path / "data.json").write_text(content)
    with pytest.raises(RunFolderError, match=r"data\.json: not "):
        Run(tmp_path).localizer("cpu")


def test_an_edited_config_that_asks_for_another_model_is_refused(config: Config, tmp_path: Path) -> None:
    train_run(config, tmp_path)
    text = (tmp_path / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(text.replace("channels: 8", "channels: 16"))
    with pytest.raises(CheckpointError, match=r"tiny, cam head, 4 classes.*head\.class_maps"):
        Run(tmp_path).localizer("cpu")


def test_a_damaged_best_gives_way_to_the_last(config: Config, tmp_path: Path) -> None:
    train_run(config, tmp_path)
    store = RunFolder(tmp_path).checkpoints
    store.best.write_bytes(store.last.read_bytes()[:-1])
    with pytest.warns(WsolNote, match=r"best\.ckpt: damaged .* using last\.ckpt instead"):
        assert Run(tmp_path).checkpoint.name == store.last.name
    assert load_checkpoint(store.last)["epoch"] == 1
