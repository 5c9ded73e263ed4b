"""CAM."""

from __future__ import annotations

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

    The head must be global average pooling and one linear layer; this is checked with one image.

    Zhou et al., "Learning Deep Features for Discriminative Localization", CVPR 2016.
    """

    def maps(self, seen: Seen, labels: Tensor) -> Tensor:
        weights = _last_linear(seen.network.model).weight.detach()
        return torch.einsum("nchw,nkc->nkhw", seen.features, weights[labels])

    def check(self, network: BorrowedClassifier, x: Tensor) -> None:
        linear = _last_linear(network.model)
        seen = network.see(x, gradients=False)
        pooled = seen.features.mean(dim=(2, 3))
        fits = linear.weight.shape == (seen.scores.shape[1], pooled.shape[1])
        with torch.no_grad():
            if not fits or not torch.allclose(linear(pooled), seen.scores, rtol=1e-3, atol=1e-4):
                raise ConfigError(
                    f"cam: the head behind {network.layer} is not global average pooling and one linear "
                    f"layer; {INSTEAD}"
                )


def _last_linear(model: nn.Module) -> nn.Linear:
    found = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not found:
        raise ConfigError(f"cam: the classifier has no linear layer; {INSTEAD}")
    return found[-1]
