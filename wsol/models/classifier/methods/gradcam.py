"""Grad-CAM."""

from __future__ import annotations

from torch import Tensor

from wsol.models.classifier.methods.method import GradientMethod, weighted
from wsol.registry import MAP_METHODS


@MAP_METHODS.register("gradcam", "channels weighed by their mean gradient (Selvaraju et al., 2017)")
class GradCAM(GradientMethod):
    """M = relu(sum_c w_c A_c),  w_c = mean over (h, w) of G_c.

    On a head of global average pooling and one linear layer, G_c is W_yc / hw everywhere, so that M before
    the relu is CAM / hw.

    Selvaraju et al., "Grad-CAM: Visual Explanations from Deep Networks via Gradient-based Localization",
    ICCV 2017. On a transformer A are the patch tokens.
    """

    def combine(self, features: Tensor, gradients: Tensor, scores: Tensor) -> Tensor:
        return weighted(features, gradients.mean(dim=(2, 3)))
