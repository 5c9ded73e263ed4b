"""CAM."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from wsol.errors import ConfigError
from wsol.models.classifier.methods.method import MapMethod
from wsol.models.classifier.network import BorrowedClassifier, Seen
from wsol.registry import MAP_METHODS

INSTEAD = "take the method gradcam, which is CAM for any head"


@MAP_METHODS.register("cam", "the last linear layer at every position: the cheapest (Zhou et al., 2016)")
class PlainCAM(MapMethod):
    """M = sum_c W_yc A_c, where the scores are W mean(A) + b: no gradient, no second pass.

    The head must be global average pooling and one linear layer; this is checked with one image. A ReLU that
    is no layer of its own may stand before the pooling, as in torchvision's DenseNets: then A is behind it.

    Zhou et al., "Learning Deep Features for Discriminative Localization", CVPR 2016.
    """

    def __init__(self) -> None:
        self._pooled: Callable[[Tensor], Tensor] = _as_it_is  # what stands before the pooling

    def maps(self, seen: Seen, labels: Tensor) -> Tensor:
        weights = _last_linear(seen.network.model).weight.detach()
        return torch.einsum("nchw,nkc->nkhw", self._pooled(seen.features), weights[labels])

    def check(self, network: BorrowedClassifier, x: Tensor) -> None:
        linear = _last_linear(network.model)
        seen = network.see(x, gradients=False)
        if linear.weight.shape == (seen.scores.shape[1], seen.features.shape[1]):
            for step in (_as_it_is, torch.relu):
                with torch.no_grad():
                    scores = linear(step(seen.features).mean(dim=(2, 3)))
                if torch.allclose(scores, seen.scores, rtol=1e-3, atol=1e-4):
                    self._pooled = step
                    return
        raise ConfigError(
            f"cam: the head behind {network.layer} is not global average pooling and one linear layer; "
            f"{INSTEAD}"
        )


def _as_it_is(features: Tensor) -> Tensor:
    return features


def _last_linear(model: nn.Module) -> nn.Linear:
    found = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not found:
        raise ConfigError(f"cam: the classifier has no linear layer; {INSTEAD}")
    return found[-1]
