"""A share of each class's images, chosen by a seed.

An image is chosen by the hash of its name, so the choice does not depend on the order of files or on the
other classes, and is the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def choose_share(names: Iterable[str], share: float, seed: int) -> frozenset[str]:
    """About `share` of the names of one class: at least one, and at least one left, where there are two."""
    names = sorted(names)
    if share <= 0 or len(names) < 2:
        return frozenset()
    count = min(max(round(share * len(names)), 1), len(names) - 1)
    return frozenset(sorted(names, key=lambda name: _rank(name, seed))[:count])


def _rank(name: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{name}".encode("utf-8", "surrogateescape")).digest()
