"""The rows of a source in blocks, worked on in this process or in several; results keep the rows' order."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, lru_cache, partial
from typing import Any, TypeVar

from tqdm import tqdm

from wsol.cores import usable_cores

R = TypeVar("R")

BLOCK = 32  # rows that one task handles
WORTH_A_PROCESS = 150  # images: for fewer, starting a process takes longer than scoring them


def choose_workers(num: int) -> int:
    """How many processes to start for this number of images."""
    return max(1, min(usable_cores(), num // WORTH_A_PROCESS))


def over_rows(task: Callable[[range], R], num: int, workers: int) -> Iterator[R]:
    """The task's result for each block of rows, in order."""
    blocks = [range(start, min(start + BLOCK, num)) for start in range(0, num, BLOCK)]
    alone = workers <= 1 or len(blocks) <= 1
    results = map(task, blocks) if alone else _pool(workers).map(_packed(task), blocks)
    with tqdm(total=num, unit=" images", desc="scoring", file=sys.stderr, disable=None, leave=False) as bar:
        for block, result in zip(blocks, results, strict=True):
            bar.update(len(block))
            yield result


@cache
def _pool(workers: int) -> ProcessPoolExecutor:
    """Processes that are started once, since several passes follow each other, and end with this one.

    Spawned, not forked: this process may hold torch's threads. The modules used here import no torch.
    """
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


_passes = itertools.count()


def _packed(task: Callable[[range], R]) -> Callable[[range], R]:
    """The task in a form that each process opens once in a pass, not once for each block: a source may be
    large, or have to read a large file."""
    return partial(_run, next(_passes), pickle.dumps(task))


def _run(number: int, packed: bytes, rows: range) -> Any:
    return _opened(number, packed)(rows)


@lru_cache(maxsize=1)
def _opened(number: int, packed: bytes) -> Callable[[range], Any]:
    """The number tells passes apart: between two of them the files of a source may have changed."""
    task: Callable[[range], Any] = pickle.loads(packed)
    return task
