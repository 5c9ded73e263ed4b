"""A map method for plain classifiers: the largest feature at every position, whatever the class."""

from torch import Tensor

from wsol.models.classifier.methods.method import MapMethod
from wsol.models.classifier.network import Seen
from wsol.registry import MAP_METHODS


@MAP_METHODS.register("loudest", "the largest feature at every position, for no class")
class Loudest(MapMethod):
    """M = max over c of A_c; A: the features (N, C, h, w) of the layer."""

    def maps(self, seen: Seen, labels: Tensor) -> Tensor:
        return seen.features.amax(dim=1, keepdim=True).expand(-1, labels.shape[1], -1, -1)
