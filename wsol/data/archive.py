"""Unpacking the published archive of CUB-200-2011, or one made like it, without trusting it.

Nothing is written outside the target, whatever the archive says: paths that lead out, links and devices are
refused, and so is an archive that unpacks to far more than a data set of images would. The target appears
complete or not at all, so that the command can simply be run again.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from tqdm import tqdm

from wsol.data.textfile import clipped
from wsol.errors import DataError
from wsol.runs.files import real_path

# Photographs hardly shrink when they are packed, and tables of text by a factor of ten or so.
MOST_RATIO = 50
ALWAYS_ALLOWED = 64 * 2**20
MOST_BYTES = 64 * 2**30
_GZIP = b"\x1f\x8b"


class _NotAnArchive(Exception):
    """The first bytes are not those of an archive."""


class _Bounded(io.RawIOBase):
    """A stream that can be read up to a limit. It counts the headers too, so no member can hide its size."""

    def __init__(self, source: BinaryIO, limit: int) -> None:
        self._source, self._left = source, limit

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = self._source.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise DataError("unpacks to far more than a data set of images would")
        return data


def is_prepared(out: Path) -> bool:
    """Whether the folder is a data set in CUB layout already."""
    return (out / "images.txt").is_file()


def prepare(archive: Path, out: Path) -> Path:
    """Unpack a data set in CUB layout into the new folder `out` and return it.

    Where `out` is already such a data set it is left as it is: running it twice does no harm.
    """
    archive, out = Path(archive), Path(out)
    if not out.name:  # '.' has no name, and a name is needed to unpack beside it
        out = real_path(out)
    if is_prepared(out):
        return out
    if not archive.is_file():
        raise DataError(f"{archive}: no such archive; CUB_200_2011.tgz is published by Caltech")
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise DataError(
            f"{out}: already exists and is not empty; choose a new folder, such as {out}/CUB_200_2011"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_overs(out)
    draft = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        draft.mkdir()
        _unpack(archive, draft)
        found = _find_dataset(draft, archive)
        if out.is_dir():
            out.rmdir()
        found.rename(out)
    except OSError as error:  # the disk is full, or the folder may not be written
        raise DataError(f"{archive}: cannot be unpacked to {out}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return out


def _unpack(archive: Path, target: Path) -> None:
    packed = archive.stat().st_size
    limit = min(max(MOST_RATIO * packed, ALWAYS_ALLOWED), MOST_BYTES)
    try:
        with archive.open("rb") as file:
            zipped = file.read(2) == _GZIP
            file.seek(0)
            with tqdm.wrapattr(file, "read", packed, desc="unpacking", disable=None) as watched:
                packed_file = cast(BinaryIO, watched)
                source = cast(BinaryIO, gzip.GzipFile(fileobj=packed_file)) if zipped else packed_file
                stream = _Bounded(source, limit)
                with _open_tar(stream) as tar:
                    for member in tar:
                        _refuse_unsafe(member)
                        tar.extract(member, target, filter="data")
                while zipped and stream.read(2**20):  # to the end, where gzip keeps its check sum
                    pass
    except _NotAnArchive as error:
        raise DataError(
            f"{archive}: not an archive ({error}); a .tgz, .tar.gz or .tar file is expected"
        ) from None
    except DataError as error:
        raise DataError(f"{archive}: refused: {error}") from None
    except tarfile.FilterError as error:
        raise DataError(f"{archive}: refused: {error}") from None
    except (EOFError, tarfile.TarError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{archive}: not a complete .tgz archive ({error}); it may have been cut short: get it again"
        ) from None


def _open_tar(stream: io.RawIOBase) -> tarfile.TarFile:
    """The archive in a stream. Raises _NotAnArchive where it does not begin as one; an archive that was cut
    short is noticed later."""
    try:
        return tarfile.open(fileobj=cast(BinaryIO, stream), mode="r|")
    except tarfile.ReadError as error:
        raise _NotAnArchive(str(error)) from None


def _refuse_unsafe(member: tarfile.TarInfo) -> None:
    if "\0" in member.name:
        raise DataError(f"the name {clipped(member.name)} is none that a file can have")
    if not abs(member.mtime) < 2**33:  # NaN is not either
        raise DataError(f"{clipped(member.name)} was changed at a time that does not exist")
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:|.*\\", member.name):
        raise DataError(f"the path {clipped(member.name)} leads out of the target")
    if not (member.isfile() or member.isdir()):
        raise DataError(f"{clipped(member.name)} is a link or a device; only files and folders are unpacked")


def _find_dataset(draft: Path, archive: Path) -> Path:
    """The folder with images.txt. What lies beside it, such as CUB's attributes.txt, is moved into it."""
    if (draft / "images.txt").is_file():
        return draft
    roots = [child for child in sorted(draft.iterdir()) if (child / "images.txt").is_file()]
    if len(roots) != 1:
        raise DataError(f"{archive}: no data set in CUB layout in it: images.txt is missing")
    for other in sorted(draft.iterdir()):
        if other != roots[0] and not (roots[0] / other.name).exists():
            other.rename(roots[0] / other.name)
    return roots[0]


def _remove_left_overs(out: Path) -> None:
    """Drafts of runs that were killed."""
    for draft in out.parent.iterdir():
        left = re.fullmatch(rf"\.{re.escape(out.name)}\.([0-9]+)\.part", draft.name)
        if left and not _is_running(int(left[1])):
            shutil.rmtree(draft, ignore_errors=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
