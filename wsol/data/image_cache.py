"""What was learnt of the image files of a data set, remembered, so that each file is decoded once and not at
every start.

A file is known by its name, its size in bytes and the time of its last change; to ask costs one `stat`. A
file that is new or changed is read again, and so is one that could not be read: only success is remembered.
The cache is `.wsol-images` in the folder of the data set. Where nothing can be written there, or the folder
is marked read-only, it is `~/.cache/wsol/<hash of the folder>.images` (below $XDG_CACHE_HOME instead of
~/.cache where that is set). It can be deleted at any time.

It is one binary table and not a data base: it is read in one go (for a million images about 90 MB, in a few
seconds), replaced by a rename (so a kill leaves the old one, and two writers cannot mix), needs no locks
(which network drives often lack), and carries a digest of itself, so that a damaged one is noticed and
ignored.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np

from wsol.data.image import ODDITIES, ImageFacts, image_sizes, in_threads, inspect_image
from wsol.data.regular_file import require_regular
from wsol.errors import DataError, RunFolderError
from wsol.runs.files import write_atomically

NAME = ".wsol-images"
MAGIC = b"wsol images 1\n"  # the number changes with the layout, with ODDITIES and with the decoder's rules
SAVE_EVERY = 60.0  # seconds, while many files are read: what a kill can lose

_PART = 1000
_DIGEST = 16
# How one file is remembered. The size in bytes and the time of change say whether it is still the same file.
_ROW = np.dtype(
    [
        ("bytes", "<i8"),
        ("mtime_ns", "<i8"),
        ("width", "<i4"),
        ("height", "<i4"),
        ("oddities", "u1"),  # one bit for each of ODDITIES
        ("decoded", "?"),  # else only the header was read, and there is no digest
    ]
)
_Stamp: TypeAlias = tuple[int, int]  # bytes, mtime_ns
# Plain tuples, which NumPy makes by the million at once: a row and the digest of the file.
_Entry: TypeAlias = tuple[tuple[int, int, int, int, int, bool], bytes]


def cached_sizes(root: Path, paths: Sequence[Path]) -> list[tuple[int, int] | None]:
    """(width, height) of each image of the data set in `root`, from its header; None where that cannot be
    read."""
    return ImageCache(root).sizes(paths) if paths else []


class ImageCache:
    """What is known of the image files of the data set in `root`."""

    def __init__(self, root: Path) -> None:
        self._root = Path(root)
        self._prefix = f"{self._root}{os.sep}"
        self._files = (self._root / NAME, *_user_files(self._root))
        self._known = self._load()
        self._learnt: dict[str, _Entry | None] = {}  # None for a file that turned out to be unreadable

    def sizes(self, paths: Sequence[Path]) -> list[tuple[int, int] | None]:
        """See `cached_sizes`."""
        stamps = self._stamps(paths)
        known = self._recall(paths, stamps)
        sizes: list[tuple[int, int] | None] = [entry[0][2:4] if entry else None for entry in known]
        missing = [i for i, size in enumerate(sizes) if size is None]
        for i, size in zip(missing, image_sizes(paths[i] for i in missing), strict=True):
            sizes[i], stamp = size, stamps[i]
            if size is not None and stamp is not None:
                self._learnt[self._name(paths[i])] = (*stamp, *size, 0, False), bytes(_DIGEST)
        self._save()
        return sizes

    def inspect(self, paths: Sequence[Path], afresh: bool = False) -> Iterator[ImageFacts | DataError]:
        """What a full decode of each file tells, or why it cannot be decoded, in the order of `paths`.

        afresh: decode every file, whatever is known of it.
        """
        stamps = self._stamps(paths)
        known: list[_Entry | None] = [None] * len(paths)
        if not afresh:
            known = [entry if entry and entry[0][5] else None for entry in self._recall(paths, stamps)]
        new = in_threads(_try_inspect, (p for p, entry in zip(paths, known, strict=True) if entry is None))
        saved = time.monotonic()
        try:
            for path, stamp, entry in zip(paths, stamps, known, strict=True):
                if entry is not None:
                    yield _facts(entry)
                    continue
                facts = next(new)
                if isinstance(facts, ImageFacts) and stamp is not None:
                    bits = sum(1 << ODDITIES.index(word) for word in facts.oddities)
                    self._learnt[self._name(path)] = (*stamp, *facts.size, bits, True), facts.digest
                elif self._name(path) in self._known:
                    self._learnt[self._name(path)] = None
                if time.monotonic() - saved > SAVE_EVERY:
                    self._save(prune=False)
                    saved = time.monotonic()
                yield facts
        finally:  # also where the caller stops early, by Ctrl-C for instance
            self._save()

    def _name(self, path: Path) -> str:
        """Relative to the data set, so that the cache stays right where the whole folder is moved."""
        return str(path).removeprefix(self._prefix)

    def _stamps(self, paths: Sequence[Path]) -> list[_Stamp | None]:
        """Taken before a file is read: one that changes meanwhile will not match at the next start."""
        begin = time.perf_counter()
        stamps = _stamp_all(paths[:_PART])
        slow = time.perf_counter() - begin > 50e-6 * _PART  # a network drive, where threads wait side by side
        parts = (paths[i : i + _PART] for i in range(_PART, len(paths), _PART))
        return stamps + list(chain.from_iterable((in_threads if slow else map)(_stamp_all, parts)))

    def _recall(self, paths: Sequence[Path], stamps: Sequence[_Stamp | None]) -> list[_Entry | None]:
        """What is known of each file; None where nothing is, or where the file has changed since."""
        entries = (self._known.get(self._name(path)) for path in paths)
        return [e if e and e[0][:2] == stamp else None for e, stamp in zip(entries, stamps, strict=True)]

    def _load(self) -> dict[str, _Entry]:
        """What the cache files hold; a missing or damaged one holds nothing."""
        known: dict[str, _Entry] = {}
        for file in self._files:
            with suppress(Exception):  # whatever is wrong with it: the images are read instead
                require_regular(file)
                known |= _unpack(file.read_bytes())
        return known

    def _save(self, prune: bool = True) -> None:
        """Write down what is new, on top of what other processes have written since.

        prune: forget files that are gone.
        """
        if not self._learnt:
            return
        known: dict[str, _Entry] = {}
        for name, entry in {**self._load(), **self._learnt}.items():
            if entry and (not prune or name in self._learnt or (self._root / name).exists()):
                known[name] = entry
        self._known, self._learnt = known, {}
        content = _pack(known)
        for i, file in enumerate(self._files):
            with suppress(OSError, RunFolderError):  # without a cache everything works, only slower
                if file.parent == self._root and not stat.S_IMODE(self._root.stat().st_mode) & 0o222:
                    continue  # marked read-only, which the superuser respects too
                file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(file, content)
                for other in self._files[i + 1 :]:  # read later, it would hide what is new
                    other.unlink(missing_ok=True)
                return


def _user_files(root: Path) -> tuple[Path, ...]:
    """The cache file in the user's own folder; none where the user has no home."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    except RuntimeError:
        return ()
    digest = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()
    return (folder / "wsol" / f"{digest[:32]}.images",)


def _pack(known: dict[str, _Entry]) -> bytes:
    """The table as bytes: MAGIC, digest of the rest, number of rows, rows, digests, names."""
    rows = np.array([row for row, _ in known.values()], _ROW)
    digests = b"".join(digest for _, digest in known.values())
    names = os.fsencode("\0".join(known))
    body = b"".join((len(rows).to_bytes(8, "little"), rows.tobytes(), digests, names))
    return MAGIC + hashlib.blake2b(body, digest_size=_DIGEST).digest() + body


def _unpack(content: bytes) -> dict[str, _Entry]:
    """The reverse of `_pack`. Raises ValueError where the content is damaged or of another version."""
    start = len(MAGIC) + _DIGEST
    body = memoryview(content)[start:]
    if (
        not content.startswith(MAGIC)
        or hashlib.blake2b(body, digest_size=_DIGEST).digest() != content[len(MAGIC) : start]
    ):
        raise ValueError("not a cache of this version")
    count = int.from_bytes(body[:8], "little")
    rows = np.frombuffer(body, _ROW, count, offset=8)
    at = 8 + rows.nbytes
    digests = np.frombuffer(body, f"V{_DIGEST}", count, offset=at)
    names = os.fsdecode(bytes(body[at + digests.nbytes :])).split("\0") if count else []
    return dict(zip(names, zip(rows.tolist(), digests.tolist(), strict=True), strict=True))


def _facts(entry: _Entry) -> ImageFacts:
    (_, _, width, height, oddities, _), digest = entry
    words = tuple(word for bit, word in enumerate(ODDITIES) if oddities >> bit & 1)
    return ImageFacts((width, height), digest, words)


def _stamp_all(paths: Iterable[Path]) -> list[_Stamp | None]:
    return [_stamp(path) for path in paths]


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _try_inspect(path: Path) -> ImageFacts | DataError:
    try:
        return inspect_image(path)
    except DataError as error:
        return error
