"""Who does the work of a request: one thread decodes photos, one looks at them.

Requests come in a thread each. If every one of them decoded and ran a network, they would fight for the
cores, and the memory would grow with the number of clients. So there is one photo in the decoder at a time;
what it leaves behind is the small square that the network sees. Models too are asked by one thread, always
the same, since torch keeps memory and helpers of its own for each thread that calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import TypeVar

from wsol.freed_memory import give_back
from wsol.serving.limits import TURN_SECONDS, UPLOADS_AT_ONCE

T = TypeVar("T")


class ClientGone(Exception):
    """The client does not wait for the answer any more."""


class Workers:
    """The two threads, and the places for files that wait for the decoder."""

    def __init__(self) -> None:
        self._decoder = ThreadPoolExecutor(1, "wsol-decode")
        self._looker = ThreadPoolExecutor(1, "wsol-look")
        self._places = BoundedSemaphore(UPLOADS_AT_ONCE)

    @contextmanager
    def upload(self) -> Iterator[None]:
        """Within this block, a file may be in memory. TimeoutError where no place became free."""
        if not self._places.acquire(timeout=TURN_SECONDS):
            raise TimeoutError
        try:
            yield
        finally:
            self._places.release()

    def decode(self, job: Callable[[], T], gone: Callable[[], bool]) -> T:
        """The result of a job of the decoder, in the order of arrival. gone: whether nobody waits for it."""
        return self._decoder.submit(_unless, gone, lambda: _tidy(job)).result()

    def look(self, job: Callable[[], T], gone: Callable[[], bool]) -> T:
        """The result of a job that asks a model, in the order of arrival."""
        return self._looker.submit(_unless, gone, job).result()

    def close(self) -> None:
        """Begin no further job."""
        for pool in (self._decoder, self._looker):
            pool.shutdown(wait=False, cancel_futures=True)


def _unless(gone: Callable[[], bool], job: Callable[[], T]) -> T:
    if gone():
        raise ClientGone
    return job()


def _tidy(job: Callable[[], T]) -> T:
    """A job whose memory goes back to the system: a photo of 64 megapixels left 200 MB behind otherwise."""
    try:
        return job()
    finally:
        give_back()
