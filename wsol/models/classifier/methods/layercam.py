"""LayerCAM."""

from __future__ import annotations

from torch import Tensor

from wsol.models.classifier.methods.method import GradientMethod
from wsol.registry import MAP_METHODS


@MAP_METHODS.register(
    "layercam", "features times positive gradients, for early layers too (Jiang et al., 2021)"
)
class LayerCAM(GradientMethod):
    """M = relu(sum_c relu(G_c) A_c), at every position for itself.

    On a head of global average pooling and one linear layer this is CAM with relu(W), divided by hw.

    Jiang et al., "LayerCAM: Exploring Hierarchical Class Activation Maps for Localization", TIP 2021.
    """

    by_position = True

    def combine(self, features: Tensor, gradients: Tensor, scores: Tensor) -> Tensor:
        return (gradients.relu() * features).sum(dim=1)
