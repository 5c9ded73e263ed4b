"""Checkpoints that survive a kill, a full disk and a flipped bit, and that execute nothing when they load.

A checkpoint file is one line of text and then a safetensors file::

    wsol-checkpoint 1 <SHA-256 of all that follows>\\n
    <safetensors: every tensor, and in its metadata the rest of the state as JSON>

The state is nested plain containers (dict, list, str, int, float, bool, None) with tensors as leaves. It
comes back equal, tuples as lists. A file is written beside its final name, flushed to the disk and renamed,
so that under the final name there is always a whole file: the old one or the new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

from wsol.errors import CheckpointError
from wsol.runs.files import alias_atomically, clear_leftovers, write_atomically

State = dict[str, Any]
MAGIC = b"wsol-checkpoint 1 "
_HEADER = len(MAGIC) + 64 + 1
_TENSOR, _ITEMS = "$tensor", "$items"
_BEST = "best"  # whether the state was the best so far when it was saved


def save_checkpoint(path: Path, state: State) -> None:
    """Write `state` to `path`, whole or not at all."""
    payload = _pack(state)
    header = MAGIC + hashlib.sha256(payload).hexdigest().encode() + b"\n"
    with _disk_errors(path):
        write_atomically(path, header, payload)


def load_checkpoint(path: Path) -> State:
    """The state in `path`, on the CPU. CheckpointError says what is wrong with the file, if anything is."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    if not content:
        raise CheckpointError(f"{path}: the file is empty")
    if not content.startswith(MAGIC) or content[_HEADER - 1 : _HEADER] != b"\n":
        raise CheckpointError(f"{path}: not a checkpoint of this toolkit (or its first bytes are damaged)")
    digest, payload = content[len(MAGIC) : _HEADER - 1], content[_HEADER:]
    if hashlib.sha256(payload).hexdigest().encode() != digest:
        raise CheckpointError(f"{path}: damaged or cut short: its content does not match its SHA-256 digest")
    try:
        return _unpack(payload)
    except Exception as error:  # whole as it was written, so somebody wrote something else
        raise CheckpointError(f"{path}: not a state that this toolkit writes ({error!r})") from None


class Checkpoints:
    """The checkpoints of a run: `last`, the one before it, and the `best` where validation chose one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last = folder / "last.ckpt"
        self.previous = folder / "previous.ckpt"
        self.best = folder / "best.ckpt"
        self._last_is_good = False

    def prepare(self) -> None:
        """Make the folder and clear what a killed save left behind. For the one writer, under its lock."""
        self.folder.mkdir(parents=True, exist_ok=True)
        clear_leftovers(self.folder)

    def save(self, state: State, best: bool = False) -> None:
        """`state` becomes `last`, and what was `last` becomes `previous` (unless it was found damaged)."""
        if self._last_is_good:
            with _disk_errors(self.previous):
                alias_atomically(self.last, self.previous)
        save_checkpoint(self.last, {**state, _BEST: True} if best else state)
        self._last_is_good = True
        if best:
            self._mark_best()

    def load_last(self, notice: Callable[[str], None]) -> State | None:
        """The newest state that loads, or None where none was ever saved."""
        if not self.last.exists() and not self.previous.exists():
            return None
        state, used = load_first([self.last, self.previous], notice)
        self._last_is_good = used == self.last
        if state.pop(_BEST, False) and self._last_is_good:
            self._mark_best()  # a kill may have come between the two
        return state

    def _mark_best(self) -> None:
        with _disk_errors(self.best):
            alias_atomically(self.last, self.best)


def load_first(paths: list[Path], notice: Callable[[str], None]) -> tuple[State, Path]:
    """The first of the checkpoints that loads. A damaged one is passed over with a notice."""
    problems: list[str] = []
    for path in paths:
        try:
            state = load_checkpoint(path)
        except CheckpointError as error:
            problems.append(str(error))
            continue
        for problem in problems:
            notice(f"{problem}; using {path.name} instead")
        return state, path
    raise CheckpointError("; ".join(problems))


def require_parts(state: State, parts: Sequence[str]) -> None:
    """Raise where a checkpoint lacks what its reader is about to use."""
    missing = [part for part in parts if part not in state]
    if missing:
        raise CheckpointError(f"the checkpoint is not one of a run: it has no {', '.join(missing)}")


def load_model_state(model: nn.Module, state: Mapping[str, torch.Tensor], here: str, there: str) -> None:
    """Load weights that must fit entirely; the error names what does not and both sides' descriptions.

    here: the model at hand, in words. there: the model that the checkpoint was made with.
    """
    own = model.state_dict()
    problems = [f"{k}: only in the checkpoint" for k in state if k not in own]
    for key, value in own.items():
        if key not in state:
            problems.append(f"{key}: missing in the checkpoint")
        elif state[key].shape != value.shape:
            problems.append(f"{key}: {tuple(state[key].shape)} in the checkpoint, {tuple(value.shape)} here")
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise CheckpointError(
            f"the checkpoint is of another model ({there}) than this one ({here}): "
            + "; ".join(problems[:3])
            + more
        )
    model.load_state_dict(state)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """A full disk and its like as one line that says what is still there."""
    try:
        yield
    except OSError as error:
        kept = "; the former one is intact" if path.exists() else ""
        raise CheckpointError(f"{path}: could not be written: {error.strerror}{kept}") from None


def _pack(state: State) -> bytes:
    tensors: dict[str, torch.Tensor] = {}

    def plain(value: Any, path: str) -> Any:
        if isinstance(value, torch.Tensor):
            # A copy of its own: safetensors takes neither shared memory nor strides.
            name = f"{len(tensors)}{path}"  # numbered: a key may itself hold a slash
            tensors[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
            return {_TENSOR: name}
        if isinstance(value, Mapping):
            if all(isinstance(k, str) and not k.startswith("$") for k in value):
                return {k: plain(v, f"{path}/{k}") for k, v in value.items()}
            return {_ITEMS: [[k, plain(v, f"{path}/{k}")] for k, v in value.items()]}
        if isinstance(value, (list, tuple)):
            return [plain(v, f"{path}/{i}") for i, v in enumerate(value)]
        if value is None or isinstance(value, (str, int, float, bool)):
            return value
        raise TypeError(f"a checkpoint cannot hold the {type(value).__name__} at {path}")

    return safetensors.torch.save(tensors, {"state": json.dumps(plain(state, ""))})


def _unpack(payload: bytes) -> State:
    tensors = safetensors.torch.load(payload)
    length = int.from_bytes(payload[:8], "little")
    metadata = json.loads(payload[8 : 8 + length])["__metadata__"]

    def rich(value: Any) -> Any:
        if isinstance(value, dict):
            if _TENSOR in value:
                return tensors[value[_TENSOR]]
            if _ITEMS in value:
                return {k: rich(v) for k, v in value[_ITEMS]}
            return {k: rich(v) for k, v in value.items()}
        if isinstance(value, list):
            return [rich(v) for v in value]
        return value

    state: State = rich(json.loads(metadata["state"]))
    return state
