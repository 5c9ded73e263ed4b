"""The one way in which this package writes files: completely or not at all.

A file is written beside its final name as a *draft*, flushed to the disk and renamed. So under the final name
there is always a whole file, the old one or the new one, after a kill and on a full disk too::

    write_text(path, text)                       # a text file
    write_json(path, record)                     # valid JSON: NaN and infinity become null
    with replacing(path) as draft:               # for writers that want a file name
        image.save(draft)
    with replacing_folder(path) as draft:        # a folder of files
        (draft / "a.txt").write_text("a")

Nothing is written through a link: a link at the final name is replaced, and the file that it pointed to stays
as it is. Devices, pipes and folders are refused as targets of a file. Every failure is a RunFolderError of
one line.

The name of a draft is `.wsol-<32 random hex digits>.tmp` and the suffix of the final name. Nothing else makes
such names, so `clear_leftovers` may remove the drafts that a kill left behind; it removes nothing else. The
process that writes a draft holds a lock on it, and a locked draft is not removed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import re
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from wsol.errors import RunFolderError
from wsol.runs.exchange import exchange

LARGEST_TEXT = 1 << 31  # bytes: records of a million images have a tenth of it

_DRAFT = re.compile(r"\.wsol-[0-9a-f]{32}\.tmp(\.\w{1,12})?", re.ASCII)
_FORMER_DRAFT = re.compile(r"(?P<name>.+)\.\d+\.tmp")  # as earlier versions named them: metrics.csv.1234.tmp


def write_atomically(path: Path, *chunks: bytes, parents: bool = False) -> None:
    """The file `path` with these bytes. parents: make the folders above it where they are missing."""
    with _draft(path, parents) as (_, descriptor), os.fdopen(os.dup(descriptor), "wb") as file:
        for chunk in chunks:
            file.write(chunk)


def write_text(path: Path, text: str, parents: bool = False) -> None:
    """The file `path` with this text in UTF-8; what UTF-8 cannot hold is written as an escape: `\\udcff`."""
    write_atomically(path, text.encode(errors="backslashreplace"), parents=parents)


def write_json(path: Path, record: Any, parents: bool = False) -> None:
    """The file `path` with this record as JSON."""
    write_text(path, json_text(record), parents)


def json_text(record: Any) -> str:
    """A record as JSON. NaN and infinity, which JSON does not have, become null."""
    return json.dumps(_without_nan(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@contextmanager
def replacing(path: Path, parents: bool = False) -> Iterator[Path]:
    """An empty draft file with the suffix of `path`; it becomes `path` when the block ends without error."""
    with _draft(path, parents) as (draft, _):
        yield draft


@contextmanager
def replacing_folder(path: Path, parents: bool = False) -> Iterator[Path]:
    """An empty draft folder, which becomes `path` when the block ends without an error."""
    with _one_line(path):
        draft = new_draft_folder(path, parents)
        with _removed_at_the_end(draft), _locked(os.open(draft, os.O_RDONLY)):
            yield draft
            replace_folder(draft, path)


def new_draft_folder(path: Path, parents: bool = False) -> Path:
    """An empty folder beside `path` that several processes may fill; `replace_folder` gives it its name."""
    with _one_line(path):
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        draft = _draft_path(path)
        draft.mkdir()
        return draft


def replace_folder(draft: Path, path: Path) -> None:
    """The folder `draft` becomes `path`, and the former `path` is removed.

    The two names are exchanged in one step, so that a kill leaves the former folder or the new one. A file
    system that has no such step (some network disks) has the former folder moved away first.
    """
    with _one_line(path):
        for inner in draft.rglob("*"):
            if inner.is_file() and not inner.is_symlink():
                _sync(inner)
        _sync(draft)
        if path.is_symlink():
            path.unlink()
        if not path.exists():
            draft.rename(path)
        else:
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "a file of that name exists", str(path))
            if not exchange(draft, path):
                away = _draft_path(path)
                path.rename(away)
                draft.rename(path)
                draft = away
            shutil.rmtree(draft, ignore_errors=True)
        _sync(path.parent)


def alias_atomically(source: Path, target: Path) -> None:
    """`target` becomes a second name of the file `source`, or a copy where the disk has no hard links."""
    with _one_line(target):
        _refuse_special(target)
        draft = _draft_path(target)
        with _removed_at_the_end(draft):
            try:
                os.link(source, draft)
            except OSError:
                with replacing(target) as copy:
                    shutil.copyfile(source, copy)
            else:
                draft.replace(target)


def make_folder(path: Path) -> bool:
    """Make the folder where it is missing, and say whether it was. A link in its place is refused."""
    refuse_link(path)
    with _one_line(path):
        new = not path.exists()
        path.mkdir(exist_ok=True)
        return new


def refuse_link(path: Path) -> None:
    """Raise where a folder that is written into is a link."""
    if path.is_symlink():
        raise RunFolderError(
            f"{path}: is a link, and what is written there would go elsewhere; put a folder in its place"
        )


def open_regular(path: Path) -> BinaryIO:
    """The file, open for reading. A pipe or a device, which may never end, is an OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "not a regular file but a folder", str(path))
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def real_path(path: Path) -> Path:
    """Where a path leads through all links. One that leads to itself stays, where `Path.resolve` raises."""
    return Path(os.path.realpath(path))


def read_regular(path: Path, largest: int = LARGEST_TEXT) -> bytes:
    """The content of a file of at most `largest` bytes.

    A pipe, a device and a file that is larger are an OSError, before anything is read into memory: a sparse
    file on a small disk may be larger than every memory.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest:
            reason = f"a file of {size:,} bytes, and at most {largest:,} are read"
            raise OSError(errno.EFBIG, reason, str(path))
        return file.read()


def clear_leftovers(folder: Path, names: Collection[str]) -> None:
    """Remove the drafts of killed processes.

    names: the files that earlier versions of the toolkit wrote here as `NAME.<process id>.tmp`.
    """
    for path in folder.iterdir():
        if is_leftover(path, names) and not _is_locked(path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def is_leftover(path: Path, names: Collection[str]) -> bool:
    """Whether the name says that this toolkit wrote a draft here."""
    former = _FORMER_DRAFT.fullmatch(path.name)
    return _DRAFT.fullmatch(path.name) is not None or (
        former is not None and former["name"] in names and path.is_file() and not path.is_symlink()
    )


@contextmanager
def _draft(path: Path, parents: bool) -> Iterator[tuple[Path, int]]:
    """A new draft of `path` and its descriptor; flushed and renamed to `path` when the block ends."""
    with _one_line(path):
        _refuse_special(path)
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        draft = _draft_path(path)
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        with _removed_at_the_end(draft), _locked(descriptor):
            yield draft, descriptor
            _sync(draft)
            draft.replace(path)
        _sync(path.parent)


@contextmanager
def _one_line(path: Path) -> Iterator[None]:
    """An OSError as one line about `path`."""
    try:
        yield
    except OSError as error:
        if error.filename and not Path(os.fsdecode(error.filename)).is_relative_to(path.parent):
            raise  # of another file, which the block was reading
        kept = "; the former one is intact" if os.path.isfile(path) else ""  # noqa: PTH113 - never raises
        raise RunFolderError(f"{path}: could not be written: {error.strerror or error}{kept}") from None


@contextmanager
def _removed_at_the_end(draft: Path) -> Iterator[None]:
    """Remove the draft when the block ends in an error; after a rename there is none."""
    try:
        yield
    finally:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Hold the lock that says that this draft is in the making."""
    try:
        with suppress(OSError):  # a disk without locks: `clear_leftovers` runs at the start of a run only
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _refuse_special(path: Path) -> None:
    """Raise where `path`, or what a link of that name points to, is not a file that can be replaced."""
    try:
        mode = path.stat().st_mode
    except OSError:  # nothing is there, or a link to nothing
        return
    # /dev/stdout is a link into /proc: an open file of this process, and no file to replace.
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; give the name of a file", str(path))
    if not stat.S_ISREG(mode) or (path.is_symlink() and path.readlink().is_relative_to("/proc")):
        raise OSError(errno.EINVAL, "not a regular file but a device or a pipe", str(path))


def _draft_path(path: Path) -> Path:
    suffix = path.suffix if re.fullmatch(r"\.\w{1,12}", path.suffix, re.ASCII) else ""
    return path.with_name(f".wsol-{secrets.token_hex(16)}.tmp{suffix}")


def _sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk, so that they last through a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _without_nan(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(v) for v in value]
    return value
