"""The commands that one command suggests after it, ready to be typed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsol.run import Run


def evaluate_command(run: Run) -> str:
    return shlex.join(["wsol", "evaluate", str(run.path)])


def report_command(run: Run) -> str:
    return shlex.join(["wsol", "report", str(run.path)])


def localize_command(run: Run) -> str:
    """On the photos that it was trained on: others can be given in their place."""
    photos = str(run.config.data.root)
    return shlex.join(["wsol", "localize", str(run.path), photos, "--out", f"found/{run.name}"])
