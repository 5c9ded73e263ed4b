"""XGrad-CAM."""

from __future__ import annotations

from torch import Tensor

from wsol.models.classifier.methods.method import GradientMethod, weighted
from wsol.registry import MAP_METHODS

TINY = 1e-7  # against channels that are 0 everywhere, as in pytorch-grad-cam


@MAP_METHODS.register("xgradcam", "gradients averaged with the features as weights (Fu et al., 2020)")
class XGradCAM(GradientMethod):
    """M = relu(sum_c w_c A_c),  w_c = sum over (h, w) of G_c A_c / sum(A_c).

    Fu et al., "Axiom-based Grad-CAM: Towards Accurate Visualization and Explanation of CNNs", BMVC 2020.
    """

    def combine(self, features: Tensor, gradients: Tensor, scores: Tensor) -> Tensor:
        total = features.sum(dim=(2, 3)) + TINY
        return weighted(features, (gradients * features).sum(dim=(2, 3)) / total)
