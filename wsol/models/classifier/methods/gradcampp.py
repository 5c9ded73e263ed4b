"""Grad-CAM++."""

from __future__ import annotations

import torch
from torch import Tensor

from wsol.models.classifier.methods.method import GradientMethod, weighted
from wsol.registry import MAP_METHODS

TINY = 1e-6  # against 0 / 0, as in pytorch-grad-cam


@MAP_METHODS.register("gradcam++", "positive gradients, weighed at each position (Chattopadhay et al., 2018)")
class GradCAMPlusPlus(GradientMethod):
    """M = relu(sum_c w_c A_c),  w_c = sum over (h, w) of a_c relu(G_c),

        a_c = G_c^2 / (2 G_c^2 + sum(A_c) G_c^3),  0 where G_c is 0.

    Chattopadhay et al., "Grad-CAM++: Generalized Gradient-based Visual Explanations for Deep Convolutional
    Networks", WACV 2018. Departs from the paper as pytorch-grad-cam does: G is the gradient of the score and
    not of its exponential, which only scales the map of an image where all of G has the same factor.
    """

    def combine(self, features: Tensor, gradients: Tensor, scores: Tensor) -> Tensor:
        total = features.sum(dim=(2, 3), keepdim=True)
        square = gradients.square()
        alpha = square / (2 * square + total * square * gradients + TINY)
        alpha = torch.where(gradients != 0, alpha, torch.zeros_like(alpha))
        return weighted(features, (alpha * gradients.relu()).sum(dim=(2, 3)))
