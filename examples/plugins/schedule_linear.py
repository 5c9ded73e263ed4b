"""A schedule: the factor on the learning rate as a function of the progress in epochs."""

from collections.abc import Callable

from wsol.registry import SCHEDULES


@SCHEDULES.register("linear", "a straight line from the full rate down to `final` times it")
def linear(total: float, final: float = 0.0) -> Callable[[float], float]:
    return lambda epoch: 1 + (final - 1) * min(epoch / total, 1)
