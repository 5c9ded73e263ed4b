"""Several processes under torchrun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def torchrun(*arguments: object, restarts: int = 0, **settings: Any) -> subprocess.Popen[str]:
    """Start `torchrun ARGUMENTS` with two processes and piped output, on an address of this machine alone."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"),
            *("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"),
            f"--max-restarts={restarts}",
            *map(str, arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        **settings,
    )


def rank_process(parent: int, rank: int) -> int:
    """The process id of a rank: the child of torchrun with that number in its environment."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"\0RANK={rank}\0" in (entry / "environ").read_text(errors="replace"):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == parent:
                    return int(entry.name)
        except OSError:
            continue
    raise AssertionError(f"rank {rank} does not run")
