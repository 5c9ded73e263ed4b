"""The processor cores that this process may use, and how its threads wait for each other on them."""

from __future__ import annotations

import os


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
