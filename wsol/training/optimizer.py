"""SGD with a learning rate for each kind of parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.optim import SGD

from wsol.config import Train

if TYPE_CHECKING:
    from wsol.models.localizer import Localizer


def make_optimizer(localizer: Localizer, train: Train) -> SGD:
    """Pretrained parameters learn at lr, new ones at `head_lr` times it, new biases at `bias_lr` times that.

    What a module spares from weight decay (GPCA's theta) is spared. Each group keeps its `multiplier` of the
    rate that the schedule gives.
    """
    parameters = dict(localizer.named_parameters())
    groups = []
    for group in localizer.parameter_groups():
        multiplier = 1.0 if group.pretrained else train.head_lr * (train.bias_lr if group.bias else 1.0)
        groups.append(
            {
                "params": [parameters[name] for name in group.names],
                "multiplier": multiplier,
                "lr": train.lr * multiplier,
                "weight_decay": train.weight_decay if group.decay else 0.0,
            }
        )
    return SGD(groups, lr=train.lr, momentum=train.momentum, nesterov=train.nesterov)
