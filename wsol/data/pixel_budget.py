"""How many pixels are decoded at once: a picture of a few kilobytes may unpack to hundreds of megabytes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class PixelBudget:
    """A number of pixels that all threads of the process share.

    A thread waits until its picture fits in. One that is larger than the whole budget is decoded alone.

    >>> budget = PixelBudget(100)
    >>> with budget.taken(60):
    ...     budget.free
    40
    """

    def __init__(self, pixels: int) -> None:
        self.pixels = pixels
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # a forked process decodes nothing yet

    def _begin(self) -> None:
        self.free = self.pixels
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, pixels: int) -> Iterator[None]:
        """Within this block, so many pixels are taken."""
        pixels = min(pixels, self.pixels)
        with self._changed:
            self._changed.wait_for(lambda: self.free >= pixels)
            self.free -= pixels
        try:
            yield
        finally:
            with self._changed:
                self.free += pixels
                self._changed.notify_all()
