"""Time functions side by side and hold the ratios against bounds."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

Name = TypeVar("Name")


@dataclass(frozen=True)
class Ratio:
    """One measured ratio and the bound that it must keep.

    Args:
        name: what is compared with what.
        value: the ratio.
        bound: what it has to be; infinite where nothing is promised.
        kind: whether the bound is a lower or an upper one.
        detail: the times or sizes behind it, for the reader.
    """

    name: str
    value: float
    bound: float
    kind: Literal["at least", "at most"]
    detail: str = ""

    @property
    def kept(self) -> bool:
        return self.value >= self.bound if self.kind == "at least" else self.value <= self.bound


def time_side_by_side(
    functions: Mapping[Name, Callable[[], object]],
    rounds: int = 5,
    seconds: float = 0.3,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Name, float]:
    """Median seconds of a call of each function, by this clock.

    Each is called once to warm up. Then in every round all take turns, so that what else the machine does
    hits them alike; a turn lasts for at least `seconds`, so that short functions give as steady a median as
    long ones.
    """
    for function in functions.values():
        function()
    samples: dict[Name, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            turn_ends = clock() + seconds
            while True:
                start = clock()
                function()
                stop = clock()
                samples[name].append(stop - start)
                if stop >= turn_ends:
                    break
    return {name: statistics.median(times) for name, times in samples.items()}


def readable(seconds: float) -> str:
    """A duration for a table: '12.3 ms', '4.56 s'."""
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
