"""The layers that turn features into class maps, and how the maps of given classes are picked."""

from __future__ import annotations

from torch import Tensor, nn


class ClassMaps(nn.Sequential):
    """conv3x3, ReLU, conv3x3, ReLU, conv1x1: features to one map per output.

    Xavier-uniform weights and zero biases; neither BatchNorm nor dropout.

    Shapes: (N, inputs, h, w) -> (N, outputs, h, w).

    Raises:
        ValueError: `width` is below 1.
    """

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        if width < 1:
            raise ValueError(f"channels must be at least 1, got {width}")
        super().__init__(
            nn.Conv2d(inputs, width, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1),
        )
        for layer in self:
            if isinstance(layer, nn.Conv2d) and layer.bias is not None:
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)


def select_maps(maps: Tensor, labels: Tensor) -> Tensor:
    """The maps of given classes.

    maps (N, C, *rest), labels (N,) -> (N, *rest); labels (N, K) -> (N, K, *rest).
    """
    index = labels.reshape(len(labels), -1)
    index = index.reshape(*index.shape, *[1] * (maps.ndim - 2)).expand(-1, -1, *maps.shape[2:])
    return maps.gather(1, index).reshape(*labels.shape, *maps.shape[2:])
