"""Only regular files are opened: reading a pipe or a device may never end."""

from __future__ import annotations

import stat
from pathlib import Path

from wsol.errors import DataError


def require_regular(path: Path | str, largest: int | None = None) -> None:
    """Raise DataError where `path` is a pipe, a socket or a device, or a file of more than `largest` bytes.

    The message is the reason alone, to which the caller adds the path. Raises OSError as `Path.stat` does,
    and IsADirectoryError for a folder.
    """
    found = Path(path).stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(path)
    if not stat.S_ISREG(found.st_mode):
        raise DataError("not a regular file but a pipe, a socket or a device; it is not opened")
    if largest is not None and found.st_size > largest:
        raise DataError(f"a file of {found.st_size:,} bytes; at most {largest:,} are read")
