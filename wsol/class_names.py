"""Class names as people read them: `001.Black_footed_Albatross` is shown as `Black footed Albatross`.

Files keep the names as they are; only pictures and pages use these.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

OBJECT = "object"  # the one name where no classes are known


def display_name(name: str) -> str:
    """The name without a leading number, its underscores turned into spaces."""
    plain = re.sub(r"^\d+\.", "", name).replace("_", " ").strip()
    return plain or name


def find_label(name: str, classes: Sequence[str]) -> int | None:
    """The label of the class with this name or shown name, in upper or lower case; None for no class.

    A number that is not the name of a class is taken as a label.

    >>> [find_label(name, ["001.Blue_Jay", "002.Crow"]) for name in ("blue_jay", "002.Crow", "1", "7")]
    [0, 1, 1, None]
    """
    for wanted, names in ((name, classes), (display_name(name), display_names(classes))):
        lowered = [known.lower() for known in names]
        if wanted.lower() in lowered:
            return lowered.index(wanted.lower())
    return int(name) if name.isdecimal() and int(name) < len(classes) else None


def display_names(names: Sequence[str]) -> list[str]:
    """A name to show for each class; those that would look alike stay as they are."""
    shown = [display_name(name) for name in names]
    count = Counter(shown)
    return [nice if count[nice] == 1 else name for nice, name in zip(shown, names, strict=True)]
