"""Where the GPCA paper puts attentions in the networks that it classifies with."""

from __future__ import annotations

from torch import nn

RESIDUAL_BLOCKS = ("BasicBlock", "Bottleneck")  # of torchvision and of timm
DENSE_LAYERS = ("DenseLayer", "_DenseLayer")  # ours and timm's, and torchvision's


def paper_places(network: nn.Module) -> list[str]:
    """The modules that an attention follows, by name.

    - ResNet: the last batch norm of every residual block, before the addition.
    - DenseNet: the last convolution of every dense layer, on the new channels (our reading).
    - VGG: `features`, once. The paper says after the last convolution, where its map is 512x1x1 for images of
      32 px: so behind the last pooling.

    Raises:
        ValueError: a network of another kind, for which the paper names no place.
    """
    kinds = {name: type(module).__name__ for name, module in network.named_modules() if name}
    blocks = [name for name, kind in kinds.items() if kind in RESIDUAL_BLOCKS]
    if blocks:
        return [f"{name}.{_last(network.get_submodule(name), nn.BatchNorm2d)}" for name in blocks]
    layers = [name for name, kind in kinds.items() if kind in DENSE_LAYERS]
    if layers:
        return [f"{name}.{_last(network.get_submodule(name), nn.Conv2d)}" for name in layers]
    if "VGG" in type(network).__name__:
        return ["features"]
    raise ValueError(
        f"the paper names no places for attentions in a {type(network).__name__}, only in ResNets, DenseNets "
        "and VGGs; set network.after to names of modules, such as 'features.?'"
    )


def _last(block: nn.Module, kind: type[nn.Module]) -> str:
    """The name of the last child of a kind; short cuts are containers, so they do not count."""
    return [name for name, child in block.named_children() if isinstance(child, kind)][-1]
