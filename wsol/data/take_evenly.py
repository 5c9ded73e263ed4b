"""Some of many things, at even distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def take_evenly(items: Sequence[T], number: int) -> list[T]:
    """At most `number` of the items, at even distances, in their order.

    >>> take_evenly("abcdefgh", 3)
    ['b', 'e', 'g']
    """
    number = min(number, len(items))
    return [items[(2 * i + 1) * len(items) // (2 * number)] for i in range(number)]
