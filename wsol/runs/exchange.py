"""Two names of a file system, exchanged in one step."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_HERE = -100  # AT_FDCWD: names are relative to the current folder
_EXCHANGE = 2  # RENAME_EXCHANGE


def exchange(a: Path, b: Path) -> bool:
    """Exchange the names `a` and `b`; at no moment is one of them missing.

    Returns False, and nothing has changed, where that is not possible: on systems other than Linux, and on
    some network disks.
    """
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(_HERE, os.fsencode(a), _HERE, os.fsencode(b), _EXCHANGE) == 0
