"""Damaged, malicious and half-written checkpoints; full disks."""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wsol.errors import CheckpointError, RunFolderError
from wsol.runs.checkpoint import (
    MAGIC,
    Checkpoints,
    State,
    digest_of,
    load_checkpoint,
    save_checkpoint,
)

STATE = {"epoch": 3, "model": {"w": torch.arange(1000.0)}, "history": [{"loss": 0.5}]}


@pytest.fixture(scope="module")
def whole() -> bytes:
    folder = Path(os.environ.get("TMPDIR", "/tmp"))
    path = folder / f"wsol-test-{os.getpid()}.ckpt"
    save_checkpoint(path, STATE)
    content = path.read_bytes()
    path.unlink()
    return content


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit_anywhere_is_found(whole: bytes, tmp_path: Path, place: float, bit: int) -> None:
    damaged = bytearray(whole)
    damaged[int(place * len(whole))] ^= 1 << bit
    path = tmp_path / "c.ckpt"
    path.write_bytes(damaged)
    with pytest.raises(
        CheckpointError, match=r"c\.ckpt: (damaged|not a checkpoint|.*first bytes are damaged)"
    ):
        load_checkpoint(path)


@given(share=st.floats(0, 1, exclude_max=True))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_cut_anywhere_is_found(whole: bytes, tmp_path: Path, share: float) -> None:
    path = tmp_path / "c.ckpt"
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(CheckpointError, match=r"c\.ckpt: "):
        load_checkpoint(path)


def test_an_empty_and_a_missing_file_are_called_so(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(CheckpointError, match="is empty"):
        load_checkpoint(tmp_path / "empty")
    with pytest.raises(CheckpointError, match="No such file"):
        load_checkpoint(tmp_path / "missing")


def test_a_checkpoint_of_a_newer_version_says_so(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "c.ckpt"
    path.write_bytes(whole.replace(b"wsol-checkpoint 1 ", b"wsol-checkpoint 12 ", 1))
    for read in (load_checkpoint, digest_of):
        with pytest.raises(CheckpointError, match=r"c\.ckpt: a checkpoint of format 12, which is newer than"):
            read(path)


def test_a_pipe_or_a_folder_in_the_place_of_a_checkpoint_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(CheckpointError, match="cannot be read: not a regular file"):
            load_checkpoint(path)


class Malicious:
    """Unpickling this creates a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.trace,))


@pytest.mark.parametrize("dress", ["bare", "torch", "behind our header"])
def test_a_malicious_pickle_is_refused_and_not_executed(tmp_path: Path, dress: str, whole: bytes) -> None:
    trace = tmp_path / "executed"
    path = tmp_path / "evil.ckpt"
    if dress == "torch":
        torch.save({"model": Malicious(trace)}, path)
    else:
        path.write_bytes((whole[:83] if dress != "bare" else b"") + pickle.dumps(Malicious(trace)))
    with pytest.raises(CheckpointError):
        load_checkpoint(path)
    assert not trace.exists()
    pickle.loads(pickle.dumps(Malicious(trace)))
    assert trace.exists(), "the trap itself must work"


def test_a_damaged_last_gives_way_to_the_previous_one(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.prepare()
    for number in (1, 2):
        store.save({"n": number})
    store.last.write_bytes(store.last.read_bytes()[:-1])

    fresh = Checkpoints(tmp_path)
    said: list[str] = []
    assert fresh.load_last(said.append) == {"n": 1}
    assert len(said) == 1
    assert "last.ckpt: damaged" in said[0]
    assert "using previous.ckpt" in said[0]
    # The next save must not push the damaged file over the good one.
    fresh.save({"n": 3})
    assert load_checkpoint(fresh.previous) == {"n": 1}
    assert load_checkpoint(fresh.last) == {"n": 3}


def test_two_damaged_checkpoints_are_an_error_that_names_both(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.prepare()
    for number in (1, 2):
        store.save({"n": number})
    store.last.write_bytes(b"")
    store.previous.write_bytes(b"x")
    with pytest.raises(CheckpointError, match=r"last\.ckpt.*previous\.ckpt"):
        Checkpoints(tmp_path).load_last(print)


def test_a_kill_between_last_and_best_loses_no_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Checkpoints(tmp_path)
    store.prepare()
    store.save({"n": 1}, best=True)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "_mark_best", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            store.save({"n": 2}, best=True)
    assert load_checkpoint(store.best)["n"] == 1
    again = Checkpoints(tmp_path)
    assert again.load_last(print) == {"n": 2}
    assert load_checkpoint(again.best)["n"] == 2
    again.save({"n": 3})
    assert Checkpoints(tmp_path).load_last(print) == {"n": 3}
    assert load_checkpoint(again.best)["n"] == 2


@pytest.mark.parametrize("payload", [b"", b"nothing of ours", b"\x02\0\0\0\0\0\0\0{}", b"\xff" * 64])
def test_a_whole_file_of_something_else_is_called_so(tmp_path: Path, payload: bytes) -> None:
    path = tmp_path / "last.ckpt"
    path.write_bytes(MAGIC + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
    with pytest.raises(CheckpointError, match="not a state that this toolkit writes"):
        load_checkpoint(path)


SAVE_FOR_EVER = """
import os, sys, torch
from pathlib import Path
from wsol.runs.checkpoint import Checkpoints

for line in sys.stdin:                       # one child for each line: torch is imported only once
    child = os.fork()
    if child == 0:
        store = Checkpoints(Path(sys.argv[1]))
        store.prepare()
        state = store.load_last(print)
        n = state["n"] if state else 0
        weights = torch.zeros(300_000)
        while True:
            n += 1
            os.write(1, f"saving {n}\\n".encode())
            store.save({"n": n, "w": weights + n}, best=n % 3 == 0)
            os.write(1, f"saved {n}\\n".encode())
    os.write(1, f"child {child}\\n".encode())
    os.waitpid(child, 0)
    os.write(1, b"over\\n")
"""


@pytest.mark.parametrize("kills", [12, pytest.param(300, marks=pytest.mark.long)])
def test_kills_during_saves_lose_nothing(kills: int, tmp_path: Path, repository: Path) -> None:
    folder = tmp_path / "checkpoints"
    draw = random.Random(0)
    process = subprocess.Popen(
        [sys.executable, "-c", SAVE_FOR_EVER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=repository,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    leftovers = 0
    started, took = 0.0, 0.002  # when the save in hand began, and how long the one before it took
    for _ in range(kills):
        process.stdin.write("go\n")
        process.stdin.flush()
        child, begun, done, wanted = 0, 0, 0, draw.randint(1, 4)
        for line in process.stdout:
            word, _, number = line.strip().partition(" ")
            if word == "over":
                break
            child = int(number) if word == "child" else child
            begun = int(number) if word == "saving" else begun
            done = int(number) if word == "saved" else done
            if word == "saved":
                took = time.monotonic() - started
            started = time.monotonic()
            if word == "saving" and child and wanted > 0:
                wanted -= 1
                if wanted == 0:
                    time.sleep(draw.uniform(0, took))  # the kill falls anywhere in a save
                    os.kill(child, 9)
        last = folder / "last.ckpt"
        state: State = load_checkpoint(last) if last.exists() else {"n": 0}
        assert max(done, begun - 1) <= state["n"] <= begun, "one of the two newest"
        if state["n"]:
            assert torch.equal(state["w"], torch.full((300_000,), float(state["n"])))
        if state["n"] >= 3:
            store = Checkpoints(folder)
            store.load_last(print)
            newest = state["n"] - state["n"] % 3
            assert load_checkpoint(store.best)["n"] == newest, "no best is lost either"
        leftovers += len(list(folder.glob(".wsol-*")))
    process.stdin.close()
    assert process.wait(30) == 0
    assert leftovers, "no kill fell into a save: the test shows nothing"
    Checkpoints(folder).prepare()
    assert not list(folder.glob(".wsol-*"))


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("may not mount a small disk here; the whole command is tested with a file size limit")
    try:
        store = Checkpoints(mount)
        store.prepare()
        store.save({"n": 1, "w": torch.ones(50_000)})
        with pytest.raises(RunFolderError, match=r"No space left on device; the former one is intact"):
            store.save({"n": 2, "w": torch.ones(500_000)})
        assert load_checkpoint(store.last)["n"] == 1
        assert not list(mount.glob(".wsol-*")), "the attempt must not keep the disk full"
        store.save({"n": 3, "w": torch.ones(50_000)})
    finally:
        subprocess.run(["umount", mount], check=True)
