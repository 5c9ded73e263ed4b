"""metrics.csv: one row of figures for each epoch of a run."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from wsol.errors import RunFolderError

Row = dict[str, float]
TIME_COLUMNS = ("images_per_second", "seconds")  # the only figures that differ between equal runs


def to_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV: floats in full, so that equal runs have equal files; empty where a row lacks one."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    columns = [c for c in columns if c not in TIME_COLUMNS] + [c for c in TIME_COLUMNS if c in columns]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_csv(path: Path) -> list[Row]:
    """The rows that `to_csv` wrote. RunFolderError where the file cannot be read or holds something else."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            return [{str(k): float(v) for k, v in row.items() if v} for row in reader]
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, csv.Error) as error:
        raise RunFolderError(f"{path}: not the figures that a run writes: {error}") from None
