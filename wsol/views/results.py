"""What is known of a run's scores, for pictures: scores.json, where `wsol evaluate` has written it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wsol.errors import DataError
from wsol.scoring.protocols import Protocol


def read_scores(run: Path) -> dict[str, dict[str, Any]]:
    """The figures of a run by protocol; {} where it has not been evaluated."""
    path = run / "scores.json"
    if not path.is_file():
        return {}
    try:
        scores = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: damaged ({error}); run `wsol evaluate` again") from None
    return dict(scores.get("protocols", {}))


def default_threshold(run: Path, protocol: Protocol) -> float:
    """The threshold chosen on held-out training images where there is one, else the protocol's own."""
    at = read_scores(run).get(protocol.name, {}).get("at", {})
    return float(at.get("held_out", {}).get("threshold", protocol.fixed))
