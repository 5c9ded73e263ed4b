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
from wsol.localization.batch import AnyLocalizer, look_at
from wsol.localization.cutter import MapCutter
from wsol.localization.extraction import Extraction
from wsol.localization.localized import Finding, Localization
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

        def choose(logits: Tensor) -> Tensor:
            if wanted is None:
                return logits.softmax(dim=1).topk(min(topk, len(self.classes)), dim=1).indices
            return torch.full((len(logits), 1), wanted, device=logits.device)

        squares = np.stack([self.view.apply(image).transpose(2, 0, 1) for image in images])
        seen = look_at(self.localizer, torch.from_numpy(squares), choose)
        scores = torch.from_numpy(seen.logits).softmax(dim=1).gather(1, torch.from_numpy(seen.labels))
        return [
            self._locate(image, *rest)
            for image, *rest in zip(images, seen.labels.tolist(), scores.tolist(), seen.maps, strict=True)
        ]

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
            cutter = MapCutter(raw, size, self.view, cut=self.localizer.cut)
            boxes = cutter.find(self.extraction, np.array([self.threshold]))
            box = self.extraction.to_original(self.view, boxes.single[boxes.level[0]], size)
            empty = bool(boxes.empty[boxes.level[0]])
            found.append(Finding(label, self.classes[label], score, box, empty))
            if len(found) == 1:
                heat = cutter.score_map(self.extraction)
        return Localization(image, found, heat, self.view.region(size))
