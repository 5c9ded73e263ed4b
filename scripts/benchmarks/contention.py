"""Training beside other programs: how the threads of torch should wait for each other.

A step of the demo's network with two threads that spin (OpenMP's own way), with two that sleep (passive, what
the commands set), and with one thread; beside 0, 1, 2 and 4 busy processes of one thread. The three take
turns in every round, so that what else the machine does hits them alike. Beside k such processes on two
cores, the fair share of two threads is a step that takes (2 + k) / 2 times as long as alone.
"""

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.benchmarks.timing import Ratio, readable

# What OpenMP is told, and how many threads it gets.
WAYS = {
    "spinning": {"OMP_WAIT_POLICY": "", "OMP_NUM_THREADS": "2"},
    "passive": {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "2"},
    "one thread": {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"},
}
BUSY = (0, 1, 2, 4)
ROUNDS = 5
BOUND = 1.15  # of the spinning threads' time, beside other programs: at most a little worse, by chance
ROOT = Path(__file__).resolve().parents[2]
BUSY_LOOP = "while True: pass"
TRAINER = "from scripts.benchmarks.contention import obey; obey()"


def run() -> list[Ratio]:
    with trainers() as training:
        return [ratio for busy in BUSY for ratio in beside(busy, training)]


def beside(busy: int, training: dict[str, "subprocess.Popen[str]"]) -> Iterator[Ratio]:
    """The ratios to spinning threads, beside so many busy processes."""
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in training}
    with busy_processes(busy):
        for _ in range(ROUNDS):
            for way, process in training.items():
                times[way].append(ask(process))
    wall, core = ({way: statistics.median(t[i] for t in times[way]) for way in times} for i in (0, 1))
    for way in ("passive", "one thread"):
        yield Ratio(
            f"beside {busy} busy: step by the clock, {way} / spinning",
            wall[way] / wall["spinning"],
            BOUND if busy and way == "passive" else math.inf,
            "at most",
            f"{readable(wall[way])} against {readable(wall['spinning'])}; "
            f"processor time {readable(core[way])} against {readable(core['spinning'])}",
        )


@contextmanager
def trainers() -> Iterator[dict[str, "subprocess.Popen[str]"]]:
    """A process for each way, since OpenMP reads its settings once. Each waits until it is asked."""
    started = {}
    try:
        for way, settings in WAYS.items():
            told = {**os.environ, "MKL_NUM_THREADS": settings["OMP_NUM_THREADS"], **settings}
            told = {name: value for name, value in told.items() if value}  # empty: not set
            started[way] = subprocess.Popen(
                [sys.executable, "-c", TRAINER],
                cwd=ROOT,
                env=told,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        for process in started.values():
            ask(process)  # ready, and warm
        yield started
    finally:
        end(started.values())


@contextmanager
def busy_processes(number: int) -> Iterator[None]:
    started = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(number)]
    try:
        yield
    finally:
        end(started)


def end(processes: "Iterable[subprocess.Popen[Any]]") -> None:
    for process in processes:
        process.kill()
        process.wait()


def ask(process: "subprocess.Popen[str]") -> tuple[float, float]:
    """One turn: seconds of a step by the clock, and of processor time."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    wall, core = map(float, process.stdout.readline().split())
    return wall, core


def obey(steps: int = 3) -> None:
    """In a process of its own: for each line that comes, take steps and print what one of them took."""
    from scripts.benchmarks.cpu import make_step

    step = make_step("tiny", ())
    step()
    for _ in sys.stdin:
        wall, core = time.perf_counter(), time.process_time()
        for _ in range(steps):
            step()
        print((time.perf_counter() - wall) / steps, (time.process_time() - core) / steps, flush=True)
