"""File names that fit every disk."""

from __future__ import annotations

import hashlib
import os

LONGEST = 255  # bytes of a file name, on nearly every file system


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
