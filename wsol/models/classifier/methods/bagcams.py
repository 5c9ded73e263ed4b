"""BagCAMs."""

from __future__ import annotations

import torch
from torch import Tensor

from wsol.models.classifier.methods.method import GradientMethod
from wsol.registry import MAP_METHODS


@MAP_METHODS.register("bagcams", "a bag of regional localizers, best at an early layer (Zhu et al., 2022)")
class BagCAMs(GradientMethod):
    """M = sum_c relu((1 + mean_u(g_c A_c)) g_c A_c),  g = d log z_y / d A where z_y > 0, else d z_y / d A.

    The mean is over the positions u. The authors use the layer before the last stage: `layer3` of a ResNet.

    Zhu et al., "Bagging Regional Classification Activation Maps for Weakly Supervised Object Localization",
    ECCV 2022. Our reading: the second case of g, since log z_y needs a positive score.
    """

    by_position = True

    def combine(self, features: Tensor, gradients: Tensor, scores: Tensor) -> Tensor:
        divisor = torch.where(scores > 0, scores, torch.ones_like(scores))
        product = gradients * features / divisor[:, None, None, None]
        return ((1 + product.mean(dim=(2, 3), keepdim=True)) * product).relu().sum(dim=1)
