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


def after_evaluation(run: Run, split: str) -> list[str]:
    """A line with what to type next; none for held-out images, and for a classifier, which makes no maps."""
    if split != "test" or run.config.network is not None:
        return []
    return [f"next: {report_command(run)}, or {localize_command(run)}"]


def localize_command(run: Run) -> str:
    """On the photos that it was trained on: others can be given in their place."""
    photos = str(run.config.data.root)
    return shlex.join(["wsol", "localize", str(run.path), photos, "--out", f"found/{run.name}"])
