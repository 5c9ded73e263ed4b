"""HiRes-CAM."""

from __future__ import annotations

from torch import Tensor

from wsol.models.classifier.methods.method import GradientMethod
from wsol.registry import MAP_METHODS


@MAP_METHODS.register("hirescam", "features times gradients, position by position (Draelos and Carin, 2020)")
class HiResCAM(GradientMethod):
    """M = relu(sum_c G_c A_c), at every position for itself.

    Draelos and Carin, "Use HiResCAM instead of Grad-CAM for faithful explanations of convolutional neural
    networks", 2020. Departs from the paper as pytorch-grad-cam does: the relu.
    """

    by_position = True

    def combine(self, features: Tensor, gradients: Tensor, scores: Tensor) -> Tensor:
        return (gradients * features).sum(dim=1)
