"""What the report's gallery needs of every image, packed small: pictures, quantised maps, boxes at every
threshold.

The page does not find boxes or judge them. For each image, threshold and map it gets from here the box in
65535ths of the image's sides, the IoU that the protocol counts in 10,000ths, with the highest bit set where
the image is a hit, and the outcome. Arrays travel as base64 of little-endian bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wsol.drawing.colours import heat_table, to_levels
from wsol.records import Box

HIT_BIT = 0x8000

FloatArray = NDArray[np.floating]


@dataclass(frozen=True)
class MapView:
    """What one class map of each image gives.

    boxes: (N, T, 4) in original pixels. overlap: (N, T) the IoU that the protocol counts. hit: (N, T) whether
    the image is a hit. heat: (N, h, w) in [0, 1]. score: (N,) the probability of the map's class.
    """

    boxes: FloatArray
    overlap: FloatArray
    hit: NDArray[np.bool_]
    heat: FloatArray
    score: FloatArray

    def pack(self, sizes: NDArray[np.integer]) -> dict[str, Any]:
        scale = np.concatenate([sizes, sizes], axis=1)[:, None, :]
        shares = np.rint(np.clip(self.boxes / scale, 0, 1) * 65535)
        overlap = np.floor(np.clip(self.overlap, 0, 1) * 10000).astype(np.uint16)
        return {
            "boxes": base64_of(shares.astype("<u2")),
            "overlap": base64_of((overlap | np.where(self.hit, HIT_BIT, 0)).astype("<u2")),
            "heat": base64_of(to_levels(self.heat)),
        }


@dataclass(frozen=True)
class GallerySide:
    """What one run gives to the gallery.

    true, top: the maps of the true and of the predicted class. predicted: (N,) labels, -1 where the image
    could not be read. kinds: (N, T) indices into the names of the outcomes. live: figures in percent at each
    threshold, over *all* test images, by label. knows_classes: False where no class was predicted.
    """

    name: str
    true: MapView
    top: MapView
    predicted: NDArray[np.integer]
    kinds: NDArray[np.uint8]
    live: Sequence[tuple[str, Sequence[float]]]
    knows_classes: bool = True

    def pack(self, sizes: NDArray[np.integer]) -> dict[str, Any]:
        return {
            "name": self.name,
            "shape": list(self.true.heat.shape[1:]),
            "true": self.true.pack(sizes),
            "top": self.top.pack(sizes),
            "score": {
                "true": np.round(self.true.score, 4).tolist(),
                "top": np.round(self.top.score, 4).tolist(),
            },
            "predicted": self.predicted.tolist(),
            "knows_classes": self.knows_classes,
            "kind": base64_of(self.kinds),
            "live": [{"label": name, "values": [f"{v:.1f}" for v in values]} for name, values in self.live],
        }


@dataclass(frozen=True)
class GalleryImages:
    """What is the same for every run: the photos and their truth. `regions`: what the maps cover of each.

    pictures: data URIs. large: addresses of larger pictures beside the page, where there are some.
    """

    names: Sequence[str]
    pictures: Sequence[str]
    labels: Sequence[int]
    sizes: Sequence[tuple[int, int]]
    truth: Sequence[Sequence[Box]]
    regions: Sequence[Box]
    large: Sequence[str] = ()

    def pack(self) -> dict[str, Any]:
        shares = [
            [round(v, 5) for v in (r.x0 / w, r.y0 / h, r.x1 / w, r.y1 / h)]
            for r, (w, h) in zip(self.regions, self.sizes, strict=True)
        ]
        return {
            "name": list(self.names),
            "label": list(self.labels),
            "width": [w for w, _ in self.sizes],
            "height": [h for _, h in self.sizes],
            "truth": [[[round(v, 2) for v in box] for box in boxes] for boxes in self.truth],
            "region": shares,
            "picture": list(self.pictures),
            "large": list(self.large),
        }


def pack_gallery(
    images: GalleryImages,
    sides: Sequence[GallerySide],
    classes: Sequence[str],
    kinds: Sequence[str],
    thresholds: Sequence[float],
    start: int,
) -> dict[str, Any]:
    """The data of the page as plain values. start: index of the threshold at which the slider begins."""
    sizes = np.array(images.sizes, dtype=np.int64).reshape(-1, 2)
    order = sorted(range(len(images.names)), key=lambda i: images.names[i])
    by_name = [0] * len(order)
    for rank, i in enumerate(order):
        by_name[i] = rank
    return {
        "thresholds": list(thresholds),
        "start": start,
        "classes": list(classes),
        "kinds": list(kinds),
        "by_name": by_name,
        "heat_table": base64_of(heat_table()),
        "images": images.pack(),
        "runs": [side.pack(sizes) for side in sides],
    }


def base64_of(array: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
