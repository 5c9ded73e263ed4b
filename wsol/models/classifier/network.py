"""A classifier's passes: its scores, the features of one layer, and gradients of scores at that layer.

The user's model is only borrowed. While a pass runs, it is in test mode, its parameters take no gradients and
one layer has a hook; afterwards all of that is as before, also after an error. The graph for a gradient
begins at the layer, so what comes before it costs no more than a plain forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from wsol.errors import ConfigError
from wsol.models.classifier.features import Layout

NO_INFERENCE_MODE = (
    "the classifier runs in inference mode, which allows no gradients: use torch.no_grad() in it"
)
HALF = (torch.float16, torch.bfloat16)


def no_gradient(layer: str) -> str:
    """What is said where the scores have no gradient at a layer."""
    return (
        f"layer {layer}: no gradient reaches it from the scores (the classifier switches gradients off "
        "behind it, or leaves it out); take another layer, or the method scorecam"
    )


@contextmanager
def borrowed(model: nn.Module) -> Iterator[None]:
    """The model in test mode and with parameters that take no gradients; as it was before, afterwards."""
    training = [module for module in model.modules() if module.training]
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    try:
        for module in training:
            module.training = False
        for parameter in learning:
            parameter.requires_grad_(False)
        yield
    finally:
        for module in training:
            module.training = True
        for parameter in learning:
            parameter.requires_grad_(True)


def scores_of(output: Any) -> Tensor:
    """The scores (N, classes) in what a classifier returns: a tensor, `.logits`, or the first of a tuple."""
    found = getattr(output, "logits", output)
    if isinstance(found, (tuple, list)) and found:
        found = found[0]
    if not isinstance(found, Tensor) or found.ndim != 2:
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ConfigError(f"the classifier returns {shape}, not scores (images, classes)")
    refuse_half(found, "its scores are")
    return found


@dataclass(frozen=True)
class Seen:
    """One pass over a batch of normalised images x (N, 3, S, S).

    scores: (N, classes), with a graph down to `leaf` where gradients are wanted. leaf: the output of the
    layer as the network has it. features: the same as maps (N, C, h, w), without a graph. watched: what the
    method kept of the pass beside this layer.
    """

    network: BorrowedClassifier
    x: Tensor
    scores: Tensor
    leaf: Tensor
    features: Tensor
    watched: Any = None

    def gradients(self, labels: Tensor) -> Tensor:
        """(N, C, h, w) the derivative of the score of class labels_n in image n by the features."""
        own = self.scores.gather(1, labels[:, None]).sum()
        (gradient,) = torch.autograd.grad(own, self.leaf, retain_graph=True, allow_unused=True)
        if gradient is None:
            raise ConfigError(no_gradient(self.network.layer))
        return self.network.layout.maps(gradient)


class BorrowedClassifier:
    """A classifier and one of its layers, run without a trace left in the model.

    layer: its dotted name in the model. layout: how its output is read as maps.
    """

    def __init__(self, model: nn.Module, layer: str, layout: Layout) -> None:
        self.model = model
        self.layer = layer
        self.layout = layout

    def scores(self, x: Tensor) -> Tensor:
        """(N, classes) from normalised images, by a plain pass."""
        with borrowed(self.model), torch.no_grad():
            return scores_of(self.model(x))

    def see(self, x: Tensor, gradients: bool) -> Seen:
        """A pass that keeps the layer's features. gradients: whether `Seen.gradients` will be asked for."""
        kept: list[Tensor] = []

        def keep(_module: nn.Module, _inputs: Any, output: Any) -> Any:
            if Layout.of(output, self.layout.prefix) != self.layout:
                raise ConfigError(f"layer {self.layer}: its output no longer holds maps for these images")
            refuse_half(output, f"the output of {self.layer} is")
            if gradients and output.is_inference():
                raise ConfigError(NO_INFERENCE_MODE)
            kept.append(output.detach().requires_grad_(gradients))
            # The model may have switched gradients off around this layer.
            torch.set_grad_enabled(gradients)
            # A copy goes on, which a layer that works in place may overwrite.
            return kept[-1].clone()

        was = torch.is_grad_enabled()
        hook = self.model.get_submodule(self.layer).register_forward_hook(keep)
        try:
            with borrowed(self.model), torch.set_grad_enabled(gradients):
                scores = scores_of(self.model(x))
        except RuntimeError as error:
            refuse_inference_mode(error)
            raise
        finally:
            hook.remove()
            torch.set_grad_enabled(was)
        if not kept:
            raise ConfigError(f"layer {self.layer}: the classifier does not run it")
        if gradients and not scores.requires_grad:
            raise ConfigError(no_gradient(self.layer))
        return Seen(self, x, scores, kept[-1], self.layout.maps(kept[-1].detach()))


def refuse_inference_mode(error: Exception) -> None:
    """Raise ConfigError where torch's error says that a tensor was made in inference mode."""
    if isinstance(error, RuntimeError) and "nference" in str(error):
        raise ConfigError(NO_INFERENCE_MODE) from None


def refuse_half(values: Tensor, what: str) -> None:
    """Raise where a model with 32-bit parameters computes with 16 bits."""
    if values.dtype in HALF:
        kind = str(values.dtype).removeprefix("torch.")
        raise ConfigError(
            f"the classifier runs in half precision ({what} {kind}): take torch.autocast out of it"
        )


def require_full_precision(model: nn.Module) -> None:
    """Raise where parameters have 16 bits: maps made of such gradients are mostly rounding."""
    for name, parameter in model.named_parameters():
        if parameter.dtype in HALF:
            kind = str(parameter.dtype).removeprefix("torch.")
            raise ConfigError(
                f"the classifier is in half precision ({name} is {kind}): convert it with model.float()"
            )
