"""Which layer of a classifier the maps come from: by name, or the last one that can say where."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from wsol.errors import ConfigError, WsolError
from wsol.models.classifier.features import Layout
from wsol.models.classifier.network import borrowed, refuse_inference_mode, scores_of
from wsol.registry import suggest

AUTO = "auto"
INSTEAD = "take the model that it was made from"

# These change no features, or mix the positions: never the layer that is meant by `auto`.
_PASSED_OVER = (nn.Identity, nn.Dropout, nn.Dropout2d, nn.Linear, nn.Softmax, nn.Flatten)


def find_layer(model: nn.Module, name: str, x: Tensor) -> tuple[str, Layout]:
    """The layer of this name with the layout of its output; `auto` for the last one before the pooling.

    `auto` runs one image and takes the last layer whose output holds maps at which the best score has a
    gradient. In a ViT this is the first norm of the last block: behind it, the scores depend on the class
    token alone.

    x: one normalised image (1, 3, S, S).

    Raises:
        ConfigError: no such layer, with the near names; or one without maps.
    """
    modules = dict(model.named_modules())
    if name != AUTO and name not in modules:
        raise ConfigError(f"the classifier has no layer {name!r}{suggest(name, [n for n in modules if n])}")
    wanted = [name] if name != AUTO else [n for n, m in modules.items() if n and not _is_passed_over(m)]
    outputs, scores = _run(model, {n: modules[n] for n in wanted}, x)
    prefix = getattr(model, "num_prefix_tokens", None)
    found = [(n, output, Layout.of(output, prefix)) for n, output in outputs]
    if name != AUTO:
        return name, _require_maps(name, found)
    mapped = [(n, output, layout) for n, output, layout in found if layout is not None]
    if not mapped:
        raise ConfigError(
            "the classifier has no layer with maps: nothing in it says where; a network with convolutions "
            "or patch tokens is needed"
        )
    if not scores.requires_grad:  # the model switches gradients off at its end; some methods need none
        return mapped[-1][0], mapped[-1][2]
    best = scores.amax(dim=1).sum()
    gradients = torch.autograd.grad(best, [o for _, o, _ in mapped], allow_unused=True)
    reached = [
        (n, layout)
        for (n, _, layout), g in zip(mapped, gradients, strict=True)
        if g is not None and layout.maps(g).count_nonzero() > 0
    ]
    return reached[-1] if reached else (mapped[-1][0], mapped[-1][2])


def _is_passed_over(module: nn.Module) -> bool:
    return isinstance(module, _PASSED_OVER) or "pool" in type(module).__name__.lower()


def _run(model: nn.Module, modules: dict[str, nn.Module], x: Tensor) -> tuple[list[tuple[str, Any]], Tensor]:
    """The outputs of these modules in the order in which they end, and the scores."""
    outputs: list[tuple[str, Any]] = []

    def keep(name: str) -> Any:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> Any:
            if not isinstance(output, Tensor):
                outputs.append((name, output))
                return None
            # The graph begins anew where the model has switched it off, so that later layers are reached.
            kept = (
                output if output.requires_grad else output.detach().requires_grad_(output.is_floating_point())
            )
            torch.set_grad_enabled(True)
            outputs.append((name, kept))
            return kept.clone()

        return hook

    hooks: list[RemovableHandle] = []
    try:
        for name, module in modules.items():
            if isinstance(module, torch.jit.ScriptModule):
                raise ConfigError(f"layer {name} is TorchScript, which cannot be looked into: {INSTEAD}")
            hooks.append(module.register_forward_hook(keep(name)))
        with borrowed(model), torch.enable_grad():
            scores = scores_of(model(x.detach().requires_grad_(True)))
    except (WsolError, MemoryError):
        raise
    except Exception as error:  # a ViT asserts its size, others raise what they like
        refuse_inference_mode(error)
        side, reason = x.shape[-1], (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"the classifier cannot take an image of {side}x{side}: {reason}") from error
    finally:
        for hook in hooks:
            hook.remove()
    return outputs, scores


def _require_maps(name: str, found: list[tuple[str, Any, Layout | None]]) -> Layout:
    if not found:
        raise ConfigError(f"layer {name}: the classifier does not run it")
    _, output, layout = found[-1]
    if layout is None:
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ConfigError(
            f"layer {name}: its output {shape} holds no maps (N, C, h, w) and no patch tokens (N, L, C); "
            "take a layer before the pooling, or layer auto"
        )
    return layout
