"""CutMix."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from scipy.special import betaincinv
from torch import Tensor

from wsol.models.heads.targets import LabelPairs
from wsol.registry import TRANSFORMS
from wsol.training.transforms.transform import BatchTransform


@TRANSFORMS.register("cutmix", "pastes a box of another image, labels by area (Yun et al., 2019)")
class CutMix(BatchTransform):
    """Paste the same box of another image of the batch into each image; labels count by area.

        l ~ Beta(alpha, alpha)                             centre (y, x) uniform over the pixels
        box = centre +- floor(floor(side sqrt(1 - l)) / 2), clipped to the image
        l = 1 - box area / image area                      loss = l CE(y) + (1 - l) CE(y of the other)

    One box and one permutation of the images for the batch.

    Yun et al., "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features", ICCV
    2019, in the form that wsolevaluation gives it.

    Args:
        alpha: of the distribution of l; 1 makes it uniform. Below 1, very small and very large boxes are more
            frequent; above 1, boxes of about half the image.
        rate: probability that a batch is mixed. Other batches stay as they are.

    Raises:
        ValueError: alpha is not above 0, or a rate outside 0 to 1.
    """

    mixes_labels: ClassVar[bool] = True

    def __init__(self, alpha: float = 1.0, rate: float = 1.0) -> None:
        super().__init__()
        if not 0 < alpha < math.inf:
            raise ValueError(f"alpha must be above 0, got {alpha}")
        if not 0 <= rate <= 1:
            raise ValueError(f"rate must be from 0 to 1, got {rate}")
        self.alpha = alpha
        self.rate = rate

    def transform(self, images: Tensor, labels: Tensor) -> tuple[Tensor, LabelPairs]:
        if self.rate < 1 and not self.chance(self.rate):
            return images, [(1.0, labels)]
        height, width = images.shape[2:]
        share = math.sqrt(1 - self._drawn())
        top, bottom = _interval(int(self.integers(height)), int(height * share) // 2, height)
        left, right = _interval(int(self.integers(width)), int(width * share) // 2, width)
        order = self.permutation(len(images)).to(images.device)
        mixed = images.clone(memory_format=torch.preserve_format)
        mixed[:, :, top:bottom, left:right] = images[order, :, top:bottom, left:right]
        kept = 1 - (bottom - top) * (right - left) / (height * width)
        return mixed, [(kept, labels), (1 - kept, labels[order.to(labels.device)])]

    def _drawn(self) -> float:
        """l, by the inverse of its distribution function: one number of our own generator."""
        uniform = self.uniform().item()
        return uniform if self.alpha == 1 else float(betaincinv(self.alpha, self.alpha, uniform))


def _interval(centre: int, half: int, size: int) -> tuple[int, int]:
    return max(centre - half, 0), min(centre + half, size)
