"""A lock on a folder that dies with the process that holds it."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

from wsol.errors import RunFolderError


class FolderLock:
    """One process at a time: the second is refused and told who holds the folder.

    A POSIX record lock: the system drops it when its process ends, however it ends, and forked loader workers
    do not inherit it (they would keep an `flock` alive after their parent was killed).
    """

    NAME = ".lock"

    def __init__(self, folder: Path) -> None:
        path = folder / self.NAME
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._descriptor, 200).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise RunFolderError(
                f"{folder}: in use by {holder or 'another process'}; "
                "wait for it, stop it, or use another folder"
            ) from None
        os.ftruncate(self._descriptor, 0)
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        os.write(self._descriptor, f"process {os.getpid()} on {socket.gethostname()} since {since}".encode())

    def release(self) -> None:
        os.close(self._descriptor)
