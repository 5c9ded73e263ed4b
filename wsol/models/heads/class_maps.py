"""The layers that turn features into class maps, and how the maps of given classes are picked."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ClassMaps(nn.Sequential):
    """conv3x3, ReLU, conv3x3, ReLU, conv1x1: features to one map per output.

    Xavier-uniform weights and zero biases; neither BatchNorm nor dropout. A width of 0 leaves the conv1x1
    alone: a linear head.

    Shapes: (N, inputs, h, w) -> (N, outputs, h, w).

    Raises:
        ValueError: `width` is below 0.
    """

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        if width < 0:
            raise ValueError(f"channels must be at least 0, got {width}")
        super().__init__(*two_convolutions(inputs, width), convolution(width or inputs, outputs, 1))


def two_convolutions(inputs: int, width: int) -> nn.Sequential:
    """conv3x3, ReLU, conv3x3, ReLU of this width; nothing where the width is 0."""
    if width == 0:
        return nn.Sequential()
    return nn.Sequential(
        convolution(inputs, width, 3),
        nn.ReLU(inplace=True),
        convolution(width, width, 3),
        nn.ReLU(inplace=True),
    )


def convolution(inputs: int, outputs: int, kernel: int) -> nn.Conv2d:
    """A convolution that keeps the size of the map, with Xavier-uniform weights and a bias of zero."""
    made = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)
    assert made.bias is not None
    nn.init.xavier_uniform_(made.weight)
    nn.init.zeros_(made.bias)
    return made


def select_maps(maps: Tensor, labels: Tensor) -> Tensor:
    """The maps of given classes.

    maps (N, C, *rest), labels (N,) -> (N, *rest); labels (N, K) -> (N, K, *rest).
    """
    index = labels.reshape(len(labels), -1)
    index = index.reshape(*index.shape, *[1] * (maps.ndim - 2)).expand(-1, -1, *maps.shape[2:])
    return maps.gather(1, index).reshape(*labels.shape, *maps.shape[2:])


def min_max(maps: Tensor) -> Tensor:
    """Each map stretched from 0 to 1: (m - min m) / (max m - min m); 0 where it is constant. (*, h, w).

    >>> min_max(torch.tensor([[1.0, 3.0], [2.0, 1.0]]))
    tensor([[0.0000, 1.0000],
            [0.5000, 0.0000]])
    """
    least = maps.amin(dim=(-2, -1), keepdim=True)
    width = maps.amax(dim=(-2, -1), keepdim=True) - least
    return (maps - least) / torch.where(width > 0, width, torch.ones_like(width))
