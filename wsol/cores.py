"""The processor: the cores for this process, how its threads wait there, and its bf16 instructions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


def usable_cores() -> int:
    """How many there are for this process: a batch system often grants fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def wait_passively() -> None:
    """Let torch's threads sleep while they wait for each other, unless the environment says otherwise.

    By default they spin, and where another program wants the cores they take them from the thread that they
    wait for. OpenMP reads this once, when torch is loaded: call it before torch is imported.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """Inside, torch computes on the CPU with this many threads; None for as many as before."""
    import torch  # imports slowly, so it waits until it is needed

    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# What torch calls the instructions that compute in bf16: of x86, then of ARM.
BF16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")


def bf16_instructions() -> tuple[str, ...] | None:
    """Those that this processor has, by torch's names; None where this torch cannot tell.

    Without any, `amp: bf16` gives the same kind of result, but each product is converted to float32 and back,
    which takes longer than float32 alone.
    """
    import torch  # imports slowly, so it waits until it is needed

    ask = getattr(torch.cpu, "get_capabilities", None)  # newer than the oldest torch that is allowed
    if ask is None:
        return None
    has = ask()
    return tuple(name for name in BF16_INSTRUCTIONS if has.get(name))
