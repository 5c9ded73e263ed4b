"""Score-CAM."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from wsol.models.classifier.methods.method import MapMethod, weighted
from wsol.models.classifier.network import Seen
from wsol.registry import MAP_METHODS

TINY = 1e-8  # against constant channels, as in pytorch-grad-cam
PIXELS, LARGEST = 16 * 224 * 224, 64  # of the masked images in one pass, and how many they are at most


@MAP_METHODS.register("scorecam", "channels as masks on the image; no gradients, slow (Wang et al., 2020)")
class ScoreCAM(MapMethod):
    """M = relu(sum_c w_c A_c),  w = softmax over c of z_y(x o u_c),  u_c: A_c at the image's size in [0, 1].

    Every image takes as many passes as it has channels with differences, in parts of `batch`, so that memory
    does not grow with the channels. A constant channel (mostly one that a ReLU cut to zero) hides the whole
    image, and one pass tells the scores of all of these. The passes serve all classes that are asked for.

    Wang et al., "Score-CAM: Score-Weighted Visual Explanations for Convolutional Neural Networks",
    CVPRW 2020.
    The score of an empty image, which the paper takes off, does not change the softmax.

    Args:
        batch: masked images in one pass; None for as many as have the pixels of 16 images of 224 x 224, at
            most 64. Small images in small batches would leave much of the processor unused.
    """

    def __init__(self, batch: int | None = None) -> None:
        if batch is not None and batch < 1:
            raise ValueError(f"batch {batch} is less than 1")
        self.batch = batch

    def maps(self, seen: Seen, labels: Tensor) -> Tensor:
        batch = self.batch or min(LARGEST, max(1, PIXELS // seen.x.shape[2:].numel()))
        found = []
        for x, features, own in zip(seen.x, seen.features, labels, strict=True):
            differs = features.amax(dim=(1, 2)) > features.amin(dim=(1, 2))
            scores = seen.network.scores(torch.zeros_like(x)[None])[:, own].repeat(len(features), 1)
            if differs.any():
                parts = features[differs].split(batch)
                scores[differs] = torch.cat([self._masked(seen, x, part)[:, own] for part in parts])
            weights = scores.softmax(dim=0).T  # (K, C)
            found.append(weighted(features.expand(len(own), *features.shape), weights))
        return torch.stack(found).relu()

    def _masked(self, seen: Seen, x: Tensor, channels: Tensor) -> Tensor:
        """The scores (B, classes) of one image x under B channels as masks."""
        masks = interpolate(channels[None], size=x.shape[1:], mode="bilinear", align_corners=True)[0]
        least, most = masks.amin(dim=(1, 2), keepdim=True), masks.amax(dim=(1, 2), keepdim=True)
        return seen.network.scores(x * ((masks - least) / (most - least + TINY))[:, None])
