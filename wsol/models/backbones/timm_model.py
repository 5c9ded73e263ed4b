"""`timm:NAME`: any convolutional timm model whose `feature_info` names its stages."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wsol.errors import ConfigError
from wsol.models.backbone import Backbone
from wsol.models.timm_network import timm_network, timm_weights
from wsol.models.weights import Weights
from wsol.registry import BACKBONES

CHECK_SIZE = 128  # side of the one image that runs through a model to check its cut


@BACKBONES.register("timm:", "timm:NAME, a convolutional model of the timm library")
def timm_backbone(name: str, weights: Weights, output_stride: int | None = None) -> Backbone:
    """A timm model, cut at the modules that its `feature_info` names.

    output_stride: 8 or 16 to dilate instead of striding, where the model can; its native stride if None.

    Our reading: the placement `paper` is after every stage that is smaller than the input, since timm names
    one for each stride; `original` is after the last two; gamma is 0.9; hierarchical heads read the last
    three stages, BAS's generator the last but one, SPG's side branches the two before the last.

    Raises:
        ConfigError: no such model, no named stages, stages that do not put out maps, or a model whose forward
            pass is not the chain of its stages.
    """
    network = timm_network(name, **({} if output_stride is None else {"output_stride": output_stride}))
    if not getattr(network, "feature_info", None):
        raise ConfigError(f"model.backbone: timm's {name!r} names no stages, so it cannot be cut")
    loaded = timm_weights(weights, network)
    info = network.feature_info
    named = info if isinstance(info, list) else info.get_dicts(keys=None)
    stages = _chain(name, network, [stage["module"] for stage in named])
    _check_chain(name, network, stages, named[-1]["num_chs"])
    names = tuple(stages)
    strided = tuple(stage for stage, about in zip(names, named, strict=True) if about["reduction"] > 1)
    return Backbone(
        stages,
        loaded,
        placements={
            "paper": strided,
            "original": names[-2:],
            "bas": names[-2:-1],
            "spg": names[-3:-1],
        },
        pyramid=names[-3:],
        gamma=0.9,
    )


def _chain(name: str, network: nn.Module, cuts: list[str]) -> dict[str, nn.Module]:
    """The modules of `network` in order, grouped so that a group ends at each cut; the rest is left off."""
    remaining = list(cuts)
    stages: dict[str, nn.Module] = {}
    group: list[nn.Module] = []

    def walk(path: str, module: nn.Module) -> None:
        if not remaining:
            return
        inside = [cut for cut in remaining if cut.startswith(path + ".")]
        if inside and isinstance(module, nn.Sequential):
            for child_name, child in module.named_children():
                walk(f"{path}.{child_name}", child)
            return
        group.append(module)
        if path == remaining[0]:
            stages[path.replace(".", "_")] = nn.Sequential(*group)
            group.clear()
            remaining.pop(0)

    for child_name, child in network.named_children():
        walk(child_name, child)
    if remaining:
        raise ConfigError(
            f"model.backbone: timm's {name!r} cannot be cut at {remaining[0]!r}: not a chain of modules"
        )
    return stages


def _check_chain(name: str, network: nn.Module, stages: dict[str, nn.Module], channels: int) -> None:
    """Make sure that the stages compute what the network does: its modules may not be all of its forward."""
    captured: list[Tensor] = []
    last = list(stages.values())[-1][-1]  # type: ignore[index]
    hook = last.register_forward_hook(lambda _module, _inputs, output: captured.append(output.clone()))
    network.eval()
    x = torch.linspace(-1, 1, 3 * CHECK_SIZE**2).reshape(1, 3, CHECK_SIZE, CHECK_SIZE)
    try:
        with torch.no_grad():
            network.forward_features(x)  # type: ignore[operator]
            for stage in stages.values():
                x = stage(x)
        same = x.ndim == 4 and x.shape[1] == channels and torch.allclose(captured[0], x, rtol=1e-3, atol=1e-4)
    except (RuntimeError, TypeError, ValueError, AssertionError, IndexError, AttributeError):
        same = False
    finally:
        hook.remove()
        network.train()
    if not same:
        raise ConfigError(
            f"model.backbone: timm's {name!r} cannot be cut into stages: its forward pass is not the chain "
            "of the modules that its feature_info names, or they do not put out maps (N, C, H, W)"
        )
