"""An optimizer: a function from parameter groups, each with its own rate, to a torch optimizer."""

from typing import Any

from torch.optim import Optimizer, RMSprop

from wsol.registry import OPTIMIZERS


@OPTIMIZERS.register("rmsprop", "RMSprop, as torch has it")
def rmsprop(groups: list[dict[str, Any]], lr: float, alpha: float = 0.99, momentum: float = 0.0) -> Optimizer:
    return RMSprop(groups, lr=lr, alpha=alpha, momentum=momentum)
