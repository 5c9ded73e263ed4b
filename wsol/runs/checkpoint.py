"""Checkpoints that survive a kill, a full disk and a flipped bit, and that run no code when they load.

A checkpoint file is one line of text and then a safetensors file::

    wsol-checkpoint 1 <SHA-256 of all that follows>\\n
    <safetensors: every tensor, and in its metadata the rest of the state as JSON>

The state is nested plain containers (dict, list, str, int, float, bool, None) with tensors as leaves. It
comes back equal, tuples as lists. It is written as `wsol.runs.files` writes: whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsol.errors import CheckpointError
from wsol.runs.files import alias_atomically, clear_leftovers, make_folder, open_regular, write_atomically

if TYPE_CHECKING:  # torch takes seconds to import, and the names of a run's files do not need it
    import torch
    from torch import nn

State = dict[str, Any]
VERSION = 1
MAGIC = f"wsol-checkpoint {VERSION} ".encode()
_HEADER = len(MAGIC) + 64 + 1
_FIRST_LINE = re.compile(rb"wsol-checkpoint (\d{1,9}) ([0-9a-f]{64})\n")
_TENSOR, _ITEMS = "$tensor", "$items"
_BEST = "best"  # whether the state was the best so far when it was saved


def save_checkpoint(path: Path, state: State) -> None:
    """Write `state` to `path`, whole or not at all."""
    payload = _pack(state)
    header = MAGIC + hashlib.sha256(payload).hexdigest().encode() + b"\n"
    write_atomically(path, header, payload)


def load_checkpoint(path: Path) -> State:
    """The state in `path`, on the CPU. CheckpointError says what is wrong with the file, if anything is."""
    content = _read(path)
    digest, payload = _digest_in(content, path), content[_HEADER:]
    if hashlib.sha256(payload).hexdigest() != digest:
        raise CheckpointError(f"{path}: damaged or cut short: its content does not match its SHA-256 digest")
    try:
        return _unpack(payload)
    except Exception as error:  # the digest is right, so it was written with another content
        raise CheckpointError(f"{path}: not a state that this toolkit writes ({error!r})") from None


def digest_of(path: Path) -> str:
    """The SHA-256 digest that a checkpoint carries in its first line: 64 hex digits that say which one it is.

    The rest of the file is not read, so this is quick, and a damaged file may still give its digest.
    """
    return _digest_in(_read(path, _HEADER + 8), path)  # 8: the number of a newer format may be longer


def _read(path: Path, size: int = -1) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(size)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None


def _digest_in(content: bytes, path: Path) -> str:
    """The digest in the first line, if it is the first line of a checkpoint that this version reads."""
    if not content:
        raise CheckpointError(f"{path}: the file is empty")
    line = _FIRST_LINE.match(content)
    if line is not None and int(line[1]) > VERSION:
        raise CheckpointError(
            f"{path}: a checkpoint of format {int(line[1])}, which is newer than the {VERSION} that this "
            "version of wsol reads (or its first bytes are damaged); update wsol to use it"
        )
    if line is None or int(line[1]) != VERSION:
        raise CheckpointError(f"{path}: not a checkpoint of this toolkit (or its first bytes are damaged)")
    return line[2].decode()


class Checkpoints:
    """The checkpoints of a run: `last`, the one before it, and the `best` where validation chose one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last = folder / "last.ckpt"
        self.previous = folder / "previous.ckpt"
        self.best = folder / "best.ckpt"
        self._last_is_good = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(path.name for path in (self.last, self.previous, self.best))

    def prepare(self) -> None:
        """Make the folder and clear what a killed save left behind. For the one writer, under its lock."""
        make_folder(self.folder)
        clear_leftovers(self.folder, self.names)

    def save(self, state: State, best: bool = False) -> None:
        """`state` becomes `last`, and what was `last` becomes `previous` (unless it was found damaged)."""
        if self._last_is_good:
            alias_atomically(self.last, self.previous)
        save_checkpoint(self.last, {**state, _BEST: True} if best else state)
        self._last_is_good = True
        if best:
            self._mark_best()

    def load_last(self, notice: Callable[[str], None]) -> State | None:
        """The newest state that loads, or None where none is left.

        `last`, else `previous`, else `best`, which may be many epochs older; `notice` gets a message where an
        older one is used.
        """
        if not self.exist():
            return None
        paths = [self.last, self.previous, *([self.best] if self.best.exists() else [])]
        state, used = load_first(paths, notice)
        self._last_is_good = used == self.last
        if state.pop(_BEST, False) and self._last_is_good:
            self._mark_best()  # a kill may have come between the two
        return state

    def exist(self) -> bool:
        """Whether there is any checkpoint, good or damaged."""
        return any(path.exists() for path in (self.last, self.previous, self.best))

    def _mark_best(self) -> None:
        alias_atomically(self.last, self.best)


def load_first(paths: Sequence[Path], notice: Callable[[str], None]) -> tuple[State, Path]:
    """The first of the checkpoints that loads. Those before it are passed over, with a notice for each."""
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

    here: this model, in words. there: the model that the checkpoint was made with.
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


def _pack(state: State) -> bytes:
    import safetensors.torch
    import torch

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
    import safetensors.torch

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
