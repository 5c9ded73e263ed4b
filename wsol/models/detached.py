"""A module run with its weights held still: gradients reach what goes in, and no parameter."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.func import functional_call


def call_detached(module: nn.Module, *inputs: Any) -> Any:
    """`module(*inputs)` with its present weights detached and its buffers left unchanged.

    In training, batch norm uses the statistics of the batch that passes, as always, but the running ones do
    not move: the module works on copies of its buffers. Nothing else is copied.

    Heads that look at an erased version of their input use this for the second pass (BAS).
    """
    state = {name: parameter.detach() for name, parameter in module.named_parameters()}
    state |= {name: buffer.clone() for name, buffer in module.named_buffers()}
    return functional_call(module, state, inputs)
