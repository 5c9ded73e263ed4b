"""A lock on a folder. It ends when the process ends that holds it."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path

from wsol.errors import RunFolderError

# The locks of this process, by device and inode of their files: its number and the holder in words. A forked
# process inherits the table but none of the locks, so a line counts only in the process that wrote it.
_OWN: dict[tuple[int, int], tuple[int, str]] = {}
_ONE_AT_A_TIME = threading.Lock()


class FolderLock:
    """One holder at a time: the second is refused and told who holds the folder.

    A POSIX record lock on the file `.lock`: the system drops it when its process ends, however it ends, and
    forked loader workers do not inherit it (they would keep an `flock` alive after their parent was killed).
    Such a lock is the whole process's: it would let the same process in twice, and the first of the two that
    closes the file would end both. So this process keeps a table of its own locks, and looks there before it
    opens the file.
    """

    NAME = ".lock"

    def __init__(self, folder: Path) -> None:
        self._path = folder / self.NAME
        with _ONE_AT_A_TIME:
            self._refuse_own()
            self._descriptor, self._is_new = self._open()
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.read(self._descriptor, 200).decode(errors="replace").strip()
                os.close(self._descriptor)
                raise self._in_use(holder or "another process") from None
            if not self._is_still_there():  # its holder removed the file after we had opened it
                os.close(self._descriptor)
                raise self._in_use("a process that was just ending")
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            holder = f"process {os.getpid()} on {socket.gethostname()} since {since}"
            try:
                os.ftruncate(self._descriptor, 0)
                os.write(self._descriptor, holder.encode())
            except OSError:  # the disk is full
                if self._is_new:
                    self._path.unlink(missing_ok=True)
                os.close(self._descriptor)
                raise
            self._key = _key(os.fstat(self._descriptor))
            _OWN[self._key] = os.getpid(), holder

    def release(self) -> None:
        with _ONE_AT_A_TIME:
            _OWN.pop(self._key, None)
            os.close(self._descriptor)

    def undo(self) -> None:
        """Release, and remove the file if this lock made it."""
        if self._is_new:
            with suppress(OSError):
                self._path.unlink()
        self.release()

    def _refuse_own(self) -> None:
        """Raise where this process holds the folder already, without opening the file."""
        try:
            process, holder = _OWN[_key(os.lstat(self._path))]
        except (OSError, KeyError):
            return
        if process == os.getpid():
            raise self._in_use(f"this very process ({holder})")

    def _open(self) -> tuple[int, bool]:
        """The file, open for writing, and whether it was made now. A link is never followed."""
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            return os.open(self._path, flags | os.O_CREAT | os.O_EXCL, 0o644), True
        except FileExistsError:
            pass
        try:
            descriptor = os.open(self._path, flags)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise RunFolderError(f"{self._path}: is a link, not a lock; remove it") from None
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise RunFolderError(f"{self._path}: is not a regular file, so not a lock; remove it")
        return descriptor, False

    def _is_still_there(self) -> bool:
        try:
            return os.path.samestat(os.lstat(self._path), os.fstat(self._descriptor))
        except OSError:
            return False

    def _in_use(self, holder: str) -> RunFolderError:
        return RunFolderError(
            f"{self._path.parent}: in use by {holder}; wait for it, stop it, or use another folder"
        )


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
