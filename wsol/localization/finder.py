"""A trained localizer that finds objects in photos: a path, a Pillow image or an array in, boxes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wsol.class_names import find_label
from wsol.data.image import Photo, to_rgb
from wsol.data.photos import quiet_decoder
from wsol.data.transforms import View
from wsol.errors import ConfigError
from wsol.localization.batch import AnyLocalizer, LookedAt, look_at
from wsol.localization.cutter import MapCutter
from wsol.localization.extraction import Extraction
from wsol.localization.localized import ClassAtThresholds, Finding, Localization
from wsol.records import Box
from wsol.registry import suggest


@dataclass(frozen=True)
class Finder:
    """A localizer with what turns its maps into boxes: call it with a photo, or with many by `batch`.

    protocol: the name of the protocol whose `extraction` cuts the maps. threshold: where they are cut.
    """

    localizer: AnyLocalizer
    classes: tuple[str, ...]
    protocol: str
    extraction: Extraction
    threshold: float
    view: View

    def __call__(self, photo: Photo, topk: int = 5, class_name: str | None = None) -> Localization:
        """What is in a photo, given as a path, a Pillow image or an array (H, W, 3) of uint8.

        topk: how many of the best classes to look for. class_name: look for this class instead.
        """
        return self.batch([photo], topk, class_name)[0]

    def batch(
        self, photos: Sequence[Photo], topk: int = 5, class_name: str | None = None
    ) -> list[Localization]:
        """The same for several photos in one pass."""
        if topk < 1:
            raise ConfigError(f"topk {topk}: at least 1 class is needed")
        wanted = None if class_name is None else self.find_class(class_name)
        with quiet_decoder():
            images = [to_rgb(photo) for photo in photos]
        if not images:
            return []

        seen, probabilities = self._look([self.view.apply(image) for image in images], topk, wanted)
        scores = probabilities.gather(1, torch.from_numpy(seen.labels))
        return [
            self._locate(image, *rest)
            for image, *rest in zip(images, seen.labels.tolist(), scores.tolist(), seen.maps, strict=True)
        ]

    def at_thresholds(
        self,
        square: NDArray[np.uint8],
        size: tuple[int, int],
        thresholds: NDArray[np.float64],
        label: int | None = None,
        topk: int = 5,
    ) -> ClassAtThresholds:
        """Where one class is at each of many thresholds: for a page whose slider moves the box.

        square: (S, S, 3) what `self.view.apply` made of the photo. size: (width, height) of the photo.
        thresholds: ascending; the box at each is the one that a finder with this threshold draws.
        label: the class; None for the best one. topk: how many classes to rank.
        """
        seen, probabilities = self._look([square], 1, label)
        best = probabilities[0].topk(min(topk, len(self.classes)))
        shown = int(seen.labels[0, 0])
        cutter = self._cutter(seen.maps[0, 0], size)
        side = self.view.side
        return ClassAtThresholds(
            label=shown,
            score=float(probabilities[0, shown]),
            ranking=list(zip(best.indices.tolist(), best.values.tolist(), strict=True)),
            boxes=self._cut(cutter, size, thresholds),
            heat=cutter.score_map(self.extraction, (side, side)),
            region=self.view.region(size),
        )

    def _look(
        self, squares: Sequence[NDArray[np.uint8]], topk: int, wanted: int | None
    ) -> tuple[LookedAt, Tensor]:
        """One pass over squares (S, S, 3) for the `topk` classes or the wanted one; probabilities (N, C)."""

        def choose(logits: Tensor) -> Tensor:
            if wanted is None:
                return logits.softmax(dim=1).topk(min(topk, len(self.classes)), dim=1).indices
            return torch.full((len(logits), 1), wanted, device=logits.device)

        images = np.stack([square.transpose(2, 0, 1) for square in squares])
        seen = look_at(self.localizer, torch.from_numpy(images), choose)
        return seen, torch.from_numpy(seen.logits).softmax(dim=1)

    @property
    def described(self) -> str:
        """What it is made of, in words; '' where only the caller knows."""
        return ""

    def find_class(self, name: str) -> int:
        """The label of a class by its name, or by the name that pictures show."""
        label = find_label(name, self.classes)
        if label is None:
            raise ConfigError(f"this localizer does not know the class {name!r}{suggest(name, self.classes)}")
        return label

    def _locate(
        self, image: NDArray[np.uint8], labels: list[int], scores: list[float], maps: NDArray[np.float32]
    ) -> Localization:
        size = image.shape[1], image.shape[0]
        found: list[Finding] = []
        for label, score, raw in zip(labels, scores, maps, strict=True):
            cutter = self._cutter(raw, size)
            box, empty = self._cut(cutter, size, np.array([self.threshold]))[0]
            found.append(Finding(label, self.classes[label], score, box, empty))
            if len(found) == 1:
                heat = cutter.score_map(self.extraction)
        return Localization(image, found, heat, self.view.region(size))

    def _cutter(self, raw: NDArray[np.float32], size: tuple[int, int]) -> MapCutter:
        return MapCutter(raw, size, self.view, cut=self.localizer.cut)

    def _cut(
        self, cutter: MapCutter, size: tuple[int, int], thresholds: NDArray[np.float64]
    ) -> list[tuple[Box, bool]]:
        """At each threshold, the box in pixels of the photo, and whether it stands for no foreground."""
        boxes = cutter.find(self.extraction, thresholds)
        each = [
            (self.extraction.to_original(self.view, box, size), bool(empty))
            for box, empty in zip(boxes.single, boxes.empty, strict=True)
        ]
        return [each[level] for level in boxes.level.tolist()]
