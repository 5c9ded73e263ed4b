"""Layers as plain NumPy loops, for references that share no code with what they check."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

Array = NDArray[np.float64]


def array(tensor: Tensor) -> Array:
    found: Array = tensor.detach().numpy()
    return found


def convolve(x: Array, layer: nn.Module) -> Array:
    """x (N, C, H, W) by a convolution of odd side that keeps the size of the map."""
    assert isinstance(layer, nn.Conv2d)
    assert layer.bias is not None
    weight, bias = array(layer.weight), array(layer.bias)
    side = weight.shape[2]
    padded = np.pad(x, ((0, 0), (0, 0), (side // 2, side // 2), (side // 2, side // 2)))
    out = np.zeros((len(x), len(weight), *x.shape[2:]))
    for row in range(x.shape[2]):
        for column in range(x.shape[3]):
            patch = padded[:, :, row : row + side, column : column + side]
            out[:, :, row, column] = np.einsum("nchw,ochw->no", patch, weight) + bias
    return out


def class_maps(x: Array, layers: nn.Sequential) -> Array:
    """Convolutions with a ReLU after each but the last."""
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    for layer in convolutions[:-1]:
        x = np.maximum(convolve(x, layer), 0)
    return convolve(x, convolutions[-1])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def cross_entropy(logits: Array, labels: list[int]) -> float:
    terms = [math.log(np.exp(row).sum()) - row[y] for row, y in zip(logits, labels, strict=True)]
    return float(np.mean(terms))


def stretched(image: Array) -> Array:
    """From 0 to 1, or 0 where the map is constant."""
    width = image.max() - image.min()
    return (image - image.min()) / width if width else np.zeros_like(image)
