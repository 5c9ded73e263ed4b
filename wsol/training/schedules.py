"""The learning rate over a run: a factor on the base rate as a pure function of the progress in epochs.

Nothing here has state, so a resumed run needs only its step number to be on the same curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from wsol import config
from wsol.registry import SCHEDULES

Factor = Callable[
    [float], float
]  # progress in epochs (2.5: in the middle of the third) -> factor on the rate


@SCHEDULES.register("step", "multiplies the rate by `factor` at each of the `milestones` (epochs)")
def step(total: float, milestones: tuple[float, ...] = (80,), factor: float = 0.1) -> Factor:
    if not 0 < factor <= 1 or not all(m >= 0 for m in milestones):
        raise ValueError(f"factor {factor} must be above 0 and at most 1, milestones {milestones} at least 0")
    return lambda epoch: factor ** sum(epoch >= m for m in milestones)


@SCHEDULES.register("cosine", "half a cosine from the full rate down to `final` times it")
def cosine(total: float, final: float = 0.0) -> Factor:
    if not 0 <= final <= 1:
        raise ValueError(f"final {final} must be in 0 to 1")
    return lambda epoch: final + (1 - final) * (1 + math.cos(math.pi * min(epoch / total, 1.0))) / 2


def make_schedule(schedule: config.Schedule, epochs: int, steps_per_epoch: int) -> Callable[[int], float]:
    """The factor of each step (counted from 0 over the whole run), a linear warm-up multiplied in.

    The warm-up rises step by step from 1/n to 1 over its n steps, so that the first step already learns.
    """
    factor: Factor = SCHEDULES.create(schedule.name, total=float(epochs), **schedule.options)
    warmup_steps = schedule.warmup_epochs * steps_per_epoch

    def at(step: int) -> float:
        warmup = min((step + 1) / warmup_steps, 1.0) if warmup_steps > 0 else 1.0
        return warmup * factor(step / steps_per_epoch)

    return at
