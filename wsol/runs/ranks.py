"""One process or many: how the ranks of a run communicate.

`torchrun` starts the processes and sets RANK, LOCAL_RANK and WORLD_SIZE; without it there is one rank and
nothing here communicates. Rank 0 is the main one: the only one that writes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed as dist
from torch import nn

from wsol.errors import ConfigError, WsolError

T = TypeVar("T")

_MEETINGS = itertools.count()
PATIENCE = timedelta(hours=1)  # the others wait while the main rank decodes every image once


def is_main_process() -> bool:
    """Whether this is the process that writes and prints: the only one, or rank 0 of several."""
    return os.environ.get("RANK", "0") == "0"


def pick_device(name: str, local_rank: int = 0) -> torch.device:
    """`auto` is a GPU where there is one, and else the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ConfigError(f"device {name!r}: this machine has no GPU that torch can use; try device: auto")
    return torch.device(name if ":" in name else f"{name}:{local_rank}")


def _meet(backend: str) -> None:
    """Join the process group, also after torchrun has restarted its processes.

    torchrun keeps one key-value store over restarts, which still holds the addresses of ended processes.
    On a single machine the number of restarts, the same for all, keeps them apart. Over several machines that
    number differs, and TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 makes torchrun begin with a new store.
    """
    store, rank, world = next(dist.rendezvous("env://"))
    store = dist.PrefixStore(f"meeting {next(_MEETINGS)}", store)  # a script may train, then evaluate
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]:
        store = dist.PrefixStore(f"restart {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)
    dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=PATIENCE)


@dataclass(frozen=True)
class Ranks:
    """This process among those of the run."""

    rank: int
    world: int
    device: torch.device

    @classmethod
    def join(cls, device: str) -> Ranks:
        """Meet the other ranks, where torchrun started more than one."""
        world = int(os.environ.get("WORLD_SIZE", "1"))
        place = pick_device(device, int(os.environ.get("LOCAL_RANK", "0")))
        if place.type == "cuda":
            torch.cuda.set_device(place)
        if world > 1:
            _meet("nccl" if place.type == "cuda" else "gloo")
        return cls(int(os.environ.get("RANK", "0")), world, place)

    @classmethod
    def alone(cls, device: str = "cpu") -> Ranks:
        """A single process that meets no other. device: `auto`, `cpu` or `cuda`."""
        return cls(0, 1, pick_device(device))

    def leave(self) -> None:
        if self.world > 1 and dist.is_initialized():
            dist.destroy_process_group()

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def sum(self, figures: dict[str, float]) -> dict[str, float]:
        """The sums over the ranks, the same on every rank. All ranks give the same names."""
        if self.world == 1:
            return figures
        total = torch.tensor(list(figures.values()), dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return dict(zip(figures, total.tolist(), strict=True))

    def gather(self, value: T) -> list[T]:
        """The value of each rank, in the order of the ranks, on every rank."""
        if self.world == 1:
            return [value]
        values: list[Any] = [None] * self.world
        dist.all_gather_object(values, value)
        return values

    def take_main_buffers(self, module: nn.Module) -> None:
        """The main rank's buffers on every rank; DDP itself waits for the next training step."""
        if self.world > 1:
            for buffer in module.buffers():
                dist.broadcast(buffer, src=0)

    def on_main(self, act: Callable[[], T]) -> T:
        """The result of `act`, which the main rank alone runs. If it fails, every rank raises its error."""
        if self.world == 1:
            return act()
        outcome: list[Any] = [None, None]
        if self.is_main:
            try:
                outcome[0] = act()
            except WsolError as error:
                outcome[1] = error
        dist.broadcast_object_list(outcome, src=0)
        if outcome[1] is not None:
            raise outcome[1]
        result: T = outcome[0]
        return result
