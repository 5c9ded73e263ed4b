"""What lies below a folder. Links are followed, and what cannot be read is named, so nothing is missed."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from wsol.data.image import SUFFIXES


@dataclass(frozen=True)
class Walk:
    """Files and folders below `root`, as paths relative to it with '/', sorted. Hidden ones are left out.

    unreadable: the reason for each path that could not be read: folders without permission, links without a
    target. A link with the suffix of an image counts as a file in any case: reading it says what is wrong.
    """

    root: Path
    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    unreadable: dict[Path, str] = field(default_factory=dict)

    @cached_property
    def images(self) -> list[str]:
        """The files whose suffix is that of an image."""
        return [name for name in self.files if _is_image(name)]

    def empty_folders(self) -> list[Path]:
        """Folders with no image in them or below, without those inside another such folder."""
        used = {"", *(name.rpartition("/")[0] for name in self.images)}
        for folder in list(used):
            while folder:
                folder = folder.rpartition("/")[0]
                used.add(folder)
        return [self.root / f for f in self.folders if f not in used and f.rpartition("/")[0] in used]


def walk(root: Path) -> Walk:
    """Everything below the folder `root`.

    A link to a folder above itself is not followed, since it would never end. The files there are listed
    already.
    """
    found = Walk(root)
    waiting: list[tuple[str, frozenset[tuple[int, int]]]] = [("", frozenset())]
    while waiting:
        folder, above = waiting.pop()
        try:
            here = (root / folder).stat()
            identity = here.st_dev, here.st_ino
            if identity in above:
                continue
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    if entry.name.startswith((".", "__MACOSX")):
                        continue
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if _is_folder(entry):
                        waiting.append((name, above | {identity}))
                    elif _is_image(name) or Path(entry.path).exists():
                        found.files.append(name)
                    else:
                        found.unreadable[root / name] = "a link whose target cannot be reached"
            if folder:
                found.folders.append(folder)
        except OSError as error:
            found.unreadable[root / folder] = f"this folder cannot be read: {error.strerror}"
    found.files.sort()
    found.folders.sort()
    return found


def as_text(name: str) -> str:
    """A file name as text that can be written anywhere: bytes that are not UTF-8 become escapes (\\\\xe9)."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _is_image(name: str) -> bool:
    return name[name.rfind(".") :].lower() in SUFFIXES  # pathlib would take most of the time of a walk


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle, or into a folder without permission
        return False
