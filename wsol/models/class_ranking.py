"""The map at test from the maps of several classes: weights over the ranking of an image's classes.

A head gives the map of any class. What is cut into boxes is, by `model.head.maps`,

    class       the map of the class that is asked for
    topk        the mean over the maps of the k classes with the best scores (BAS), all of them by default
    combined    a weighted sum over the whole ranking (NL-CCAM): of C classes the best C // 2 have the weights
                linspace(1, 0)^2 and the worst C // 2 the weights -linspace(0, 1)^2

The last two give the same map whatever class is asked for.

Wu et al., CVPR 2022 (BAS). Yang et al., "Combinational Class Activation Maps for Weakly Supervised Object
Localization", WACV 2020 (NL-CCAM), which has C = 200. Our reading: halves for any other number; the middle
class of an odd number has the weight 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from wsol.config import MapKind
from wsol.notices import note


def rank_weights(kind: MapKind, classes: int, topk: int | None = None) -> Tensor | None:
    """The weight of the best class's map, of the second best's and so on: (k,); None for `class`.

    topk: k, for that kind; None for all classes. More classes than there are means all, and a note says so.

    >>> rank_weights("topk", classes=5, topk=2)
    tensor([0.5000, 0.5000])
    >>> rank_weights("combined", classes=5)
    tensor([ 1.,  0.,  0., -0., -1.])
    """
    if kind == "class":
        return None
    if kind == "topk":
        if topk is not None and topk > classes:
            note(f"model.head.topk: {topk} is more than the {classes} classes that there are; all are taken")
        number = min(topk or classes, classes)
        return torch.full((number,), 1 / number)
    half = classes // 2
    best, worst = torch.linspace(1, 0, half) ** 2, -(torch.linspace(0, 1, half) ** 2)
    return torch.cat([best, torch.zeros(classes - 2 * half), worst])


def best_classes(logits: Tensor, number: int) -> Tensor:
    """The classes of each image by their score, the best first: (N, C) -> (N, number)."""
    return logits.topk(number, dim=1).indices


def weighted_map(maps: Tensor, weights: Tensor) -> Tensor:
    """sum over k of weights_k maps_k: (N, k, h, w), (k,) -> (N, h, w)."""
    return torch.einsum("nkhw,k->nhw", maps, weights.to(maps.dtype))
