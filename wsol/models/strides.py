"""The stride plan of a backbone: how far each strided stage steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from torch import nn

from wsol.errors import ConfigError
from wsol.registry import suggest

StridePlan = Literal["paper", "bas"] | Mapping[str, int]


def stride_plan(
    stride: StridePlan, paper: Mapping[str, int], bas: Mapping[str, int] | None = None
) -> dict[str, int]:
    """The strides by stage that are meant by a plan's name, or by single strides on top of `paper`.

    paper: the plan of the GPCA paper: maps of stride 16 at the end, and the default.
    bas: the plan of BAS: maps of stride 8 where its generator reads, 16 at the end; as `paper` if None.

    >>> stride_plan({"pool3": 1}, paper={"pool5": 1})
    {'pool5': 1, 'pool3': 1}
    """
    plans = {"paper": paper, "bas": paper if bas is None else bas}
    if not isinstance(stride, str):
        return {**paper, **stride}
    if stride not in plans:
        raise ConfigError(f"model.backbone.stride: no plan {stride!r}{suggest(stride, plans)}")
    return dict(plans[stride])


def set_strides(
    strided: Mapping[str, Sequence[nn.Module]],
    plan: Mapping[str, int],
    stages: Mapping[str, nn.Module],
) -> None:
    """Give the strided stages of a network the strides of a plan; nothing is dilated.

    strided: for each stage with a stride of its own, the convolutions and poolings that make it.
    plan: stage -> stride; the other stages stay as they are.
    stages: all stages, to tell one without a stride from one that does not exist.

    A pooling without overlap keeps having none: with a stride of 1 it does nothing.

    Raises:
        ConfigError: a stage that does not exist or has no stride of its own, or a stride below 1.
    """
    for name, stride in plan.items():
        where = f"model.backbone.stride.{name}"
        if name not in strided:
            what = "this stage has no stride of its own" if name in stages else "no such stage"
            raise ConfigError(f"{where}: {what}{suggest(name, strided)}")
        if stride < 1:
            raise ConfigError(f"{where}: {stride} is not a stride; 1 keeps the size of the map, 2 halves it")
        for layer in strided[name]:
            _set_stride(layer, stride)


def _set_stride(layer: nn.Module, stride: int) -> None:
    if isinstance(layer, nn.MaxPool2d):
        if layer.kernel_size == layer.stride:
            layer.kernel_size = stride
        layer.stride = stride
    elif isinstance(layer, nn.Conv2d):
        layer.stride = (stride, stride)
    else:
        raise TypeError(f"{type(layer).__name__} has no stride")
