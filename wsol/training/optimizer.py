"""Optimizers by name, with a learning rate for each kind of parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.optim import SGD, AdamW, Optimizer

from wsol.config import Rates, Train
from wsol.errors import ConfigError
from wsol.registry import OPTIMIZERS, suggest

if TYPE_CHECKING:
    from wsol.models.trainable import ParameterGroup, Trainable

Groups = list[dict[str, Any]]  # each with params, lr, multiplier, weight_decay


@OPTIMIZERS.register("sgd", "stochastic gradient descent with momentum")
def sgd(groups: Groups, lr: float, momentum: float = 0.9, nesterov: bool = False) -> Optimizer:
    if not 0 <= momentum <= 1:
        raise ValueError(f"momentum {momentum} is outside 0 to 1")
    if nesterov and momentum == 0:
        raise ValueError("nesterov needs a momentum above 0")
    return SGD(groups, lr=lr, momentum=momentum, nesterov=nesterov)


@OPTIMIZERS.register("adamw", "Adam with decoupled weight decay (Loshchilov and Hutter, 2019)")
def adamw(
    groups: Groups, lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
) -> Optimizer:
    return AdamW(groups, lr=lr, betas=betas, eps=eps)


def make_optimizer(model: Trainable, train: Train) -> Optimizer:
    """The optimizer of a config over all parameters that take gradients, in groups that learn alike.

    Each group keeps its `multiplier` of the rate that the schedule gives (`train.rates`). What a module
    spares from weight decay (GPCA's theta) is spared.

    Raises:
        ConfigError: `train.rates.named` names what the model does not have, or what is frozen; or
            everything is frozen.
    """
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise ConfigError(f"train.freeze: {train.freeze} leaves nothing to train; name an earlier stage")
    for wanted in train.rates.named:
        if not any(_is_named(name, wanted) for name in parameters):
            known = {*parameters, *(part for name in parameters for part in name.split("."))}
            near = suggest(wanted, known)
            hint = near if "did you mean" in near else ""
            raise ConfigError(f"train.rates.named: the model trains no parameter or part {wanted!r}{hint}")
    groups: Groups = []
    for group in model.parameter_groups():
        trained = [name for name in group.names if name in parameters]
        for multiplier, names in _by_rate(group, trained, train.rates).items():
            groups.append(
                {
                    "params": [parameters[name] for name in names],
                    "multiplier": multiplier,
                    "lr": train.lr * multiplier,
                    "weight_decay": train.weight_decay if group.decay else 0.0,
                }
            )
    made: Optimizer = OPTIMIZERS.create(
        train.optimizer.name, groups=groups, lr=train.lr, **train.optimizer.options
    )
    return made


def _by_rate(group: ParameterGroup, names: list[str], rates: Rates) -> dict[float, list[str]]:
    """These parameters of a group by their multiple of lr."""
    if group.pretrained:
        usual = rates.pretrained_bias if group.bias else 1.0
    else:
        usual = rates.new_bias if group.bias else rates.new
    found: dict[float, list[str]] = {}
    for name in names:
        own = [rate for wanted, rate in rates.named.items() if _is_named(name, wanted)]
        found.setdefault(own[0] if own else usual, []).append(name)
    return found


def _is_named(name: str, wanted: str) -> bool:
    """Whether `wanted` is the parameter (raw_theta), or a part of the model that it is in (layer4).

    >>> _is_named("backbone.stages.layer4.1.bn1.bias", "layer4"), _is_named("layer4_0.bn1.bias", "layer4")
    (True, False)
    """
    return f".{wanted}." in f".{name}."
