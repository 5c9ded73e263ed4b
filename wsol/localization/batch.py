"""One batch of images through a localizer: scores, and the maps of the classes that are asked for.

Validation, evaluation and photos all use this, so they get the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wsol.records import LocalizerOutput


class AnyLocalizer(Protocol):
    """What finds objects: a trained `Localizer`, or a plain classifier with a map method.

    mean: lies on the device that it runs on. cut: where it cuts raw maps itself, None where thresholds do.
    knows_classes: whether it tells the classes apart that it is asked for.
    """

    @property
    def mean(self) -> Tensor: ...
    @property
    def cut(self) -> float | None: ...
    @property
    def knows_classes(self) -> bool: ...
    def __call__(self, images: Tensor, /) -> LocalizerOutput: ...
    def maps_for(self, output: LocalizerOutput, labels: Tensor, /) -> Tensor: ...
    def masks(self) -> list[Tensor]: ...
    def eval(self) -> AnyLocalizer: ...


class HasLogits(Protocol):
    """The output of a model: logits (N, C)."""

    @property
    def logits(self) -> Tensor: ...


class Classifies(Protocol):
    """What tells classes apart: any localizer, or a trained classifier."""

    @property
    def mean(self) -> Tensor: ...
    def __call__(self, images: Tensor, /) -> HasLogits: ...
    def eval(self) -> object: ...


class LookedAt(NamedTuple):
    """What a localizer says of N images, as arrays on the CPU.

    logits: (N, C). labels: (N, K) the classes that were asked for. maps: (N, K, h, w) their raw maps.
    masks: (N, C) the attention's mask over the classes, None where there is none.
    """

    logits: NDArray[np.float32]
    labels: NDArray[np.int64]
    maps: NDArray[np.float32]
    masks: NDArray[np.float32] | None


@torch.inference_mode()
def look_at(localizer: AnyLocalizer, images: Tensor, choose: Callable[[Tensor], Tensor]) -> LookedAt:
    """One forward pass. images: uint8 (N, 3, S, S). choose: from logits (N, C) to labels (N, K)."""
    device = localizer.mean.device
    output = localizer(images.to(device, non_blocking=True))
    labels = choose(output.logits)
    maps = localizer.maps_for(output, labels)
    # The mask over the class channels is the last one that has as many channels as there are classes.
    masks = [m for m in localizer.masks() if m.shape[1] == output.logits.shape[1]]
    return LookedAt(
        output.logits.float().cpu().numpy(),
        labels.cpu().numpy(),
        maps.float().cpu().numpy(),
        masks[-1].float().cpu().numpy() if masks else None,
    )


@torch.inference_mode()
def classify(model: Classifies, images: Tensor) -> NDArray[np.float32]:
    """(N, C) the logits of images uint8 (N, 3, S, S)."""
    logits: NDArray[np.float32] = model(images.to(model.mean.device)).logits.float().cpu().numpy()
    return logits


@torch.inference_mode()
def classify_crops(localizer: Classifies, images: Tensor) -> NDArray[np.float32]:
    """(N, C) the mean over the crops of each image of the softmax of its logits.

    images: uint8 (N, K, 3, S, S). The crops of a place pass the network together, so that a pass has as many
    images as the batch.
    """
    device = localizer.mean.device
    passes = (localizer(crops.to(device, non_blocking=True)) for crops in images.unbind(dim=1))
    probabilities = torch.stack([output.logits.float().softmax(dim=1) for output in passes])
    result: NDArray[np.float32] = probabilities.mean(dim=0).cpu().numpy()
    return result
