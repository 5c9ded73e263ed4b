"""Folders for results: one that holds something is not written into, and file names fit every disk."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from wsol.errors import RunFolderError

LONGEST = 255  # bytes of a file name, on nearly every file system


def claim_folder(folder: Path, overwrite: bool = False, option: str = "--out") -> Path:
    """The folder for results, made where it is missing; one that holds something is refused.

    option: what named the folder.
    """
    try:
        if folder.exists() and not overwrite and any(folder.iterdir()):
            raise RunFolderError(f"{folder}: not empty; choose another {option} or allow it with --overwrite")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"{folder}: cannot be used as a folder: {error.strerror}") from None
    return folder


def fit_name(name: str, suffix: str, longest: int = LONGEST) -> str:
    """`name` and `suffix` as a file name of at most `longest` bytes.

    A name that is too long keeps its beginning and gets a digest of the whole, so that two of them differ.

    >>> fit_name("bird.jpg", ".png")
    'bird.jpg.png'
    >>> fit_name("bird" * 9, ".png", 24)
    'birdbirdb-ed7e0ed824.png'
    """
    encoded = os.fsencode(name)
    if len(encoded) + len(suffix) <= longest:
        return name + suffix
    digest = "-" + hashlib.sha256(encoded).hexdigest()[:10]
    kept = encoded[: longest - len(digest) - len(suffix)].decode(errors="ignore")
    return kept + digest + suffix


def file_name(text: str, suffix: str, longest: int = LONGEST) -> str:
    """The same for any text, such as the name of an image with its folders: what is no letter, digit, point
    or dash becomes an underscore."""
    return fit_name(re.sub(r"[^\w.-]+", "_", text), suffix, longest)
