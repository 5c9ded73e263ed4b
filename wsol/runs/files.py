"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

TEMPORARY = ".tmp"  # how the name of a file in the making ends; what a kill leaves goes at the next start


def write_atomically(path: Path, *chunks: bytes) -> None:
    """Write beside `path`, flush to the disk, rename. Raises OSError, and then `path` is as it was."""
    temporary = _beside(path)
    try:
        with temporary.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def alias_atomically(source: Path, target: Path) -> None:
    """`target` becomes a second name of the file `source`, or a copy where links are not possible."""
    temporary = _beside(target)
    try:
        temporary.unlink(missing_ok=True)
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)
        temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def clear_leftovers(folder: Path) -> None:
    """Remove what a killed write left behind. Only for the one writer of the folder."""
    for path in folder.iterdir():
        if is_leftover(path):
            path.unlink(missing_ok=True)


def is_leftover(path: Path) -> bool:
    """Whether a killed write of ours left this file, by its name: `metrics.csv.1234.tmp`."""
    return re.search(rf"\.\d+{re.escape(TEMPORARY)}$", path.name) is not None and path.is_file()


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}{TEMPORARY}")


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
