"""Batch norm that also works in training on a single value per channel."""

from torch import Tensor, nn
from torch.nn.functional import batch_norm


def normalise(norm: nn.BatchNorm1d | nn.BatchNorm2d, x: Tensor) -> Tensor:
    """norm(x) for x (N, C) or (N, C, H, W).

    In training, a batch with one value per channel, or with none, has no variance. There the running
    statistics are used and not changed; torch raises an error for one value, and for none the running
    statistics become NaN.
    """
    if norm.training and x.numel() <= norm.num_features:
        return batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
    return norm(x)
