"""A trained localizer in three lines::

    import wsol
    find = wsol.load("runs/demo")
    find("bird.jpg").overlay().save("found.png")

What comes back is a `Localization`: `label`, `score` and `box` of the best class, `found` for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from wsol.class_names import find_label
from wsol.data.image import Photo, to_rgb
from wsol.data.photos import quiet_decoder
from wsol.data.transforms import View
from wsol.errors import ConfigError
from wsol.localization.localized import Found, Localization
from wsol.registry import suggest
from wsol.runs.folder import LoadedRun, load_run
from wsol.scoring.frames import to_original
from wsol.scoring.image import ImageScorer
from wsol.scoring.protocols import Protocol, find_protocols
from wsol.views.results import default_threshold

if TYPE_CHECKING:
    from wsol.models.localizer import Localizer


@dataclass(frozen=True)
class Finder:
    """A localizer with what turns its maps into boxes: call it with a photo, or with many by `batch`.

    threshold: the part of the normalised map that a box encloses; see `wsol.scoring.protocols`.
    """

    localizer: Localizer
    classes: tuple[str, ...]
    protocol: Protocol
    threshold: float
    view: View

    def __call__(self, photo: Photo, topk: int = 5, class_name: str | None = None) -> Localization:
        """What is in a photo, given as a path, a Pillow image or an RGB array (H, W, 3) of uint8.

        topk: how many of the best classes to look for. class_name: look for this class instead.
        """
        return self.batch([photo], topk, class_name)[0]

    @torch.inference_mode()
    def batch(
        self, photos: Sequence[Photo], topk: int = 5, class_name: str | None = None
    ) -> list[Localization]:
        """The same for several photos in one pass."""
        images = [as_array(photo) for photo in photos]
        squares = np.stack([self.view.apply(image).transpose(2, 0, 1) for image in images])
        output = self.localizer(torch.from_numpy(squares).to(next(self.localizer.parameters()).device))
        scores = output.logits.float().softmax(dim=1)
        if class_name is None:
            labels = scores.topk(min(max(topk, 1), len(self.classes)), dim=1).indices
        else:
            labels = torch.full((len(images), 1), self.find_class(class_name), device=scores.device)
        maps = self.localizer.maps_for(output, labels).double().cpu().numpy()
        chosen = scores.gather(1, labels).tolist()
        return [
            self._locate(image, *rest)
            for image, *rest in zip(images, labels.tolist(), chosen, maps, strict=True)
        ]

    def find_class(self, name: str) -> int:
        """The label of a class by its name, or by the name that pictures show."""
        label = find_label(name, self.classes)
        if label is None:
            raise ConfigError(f"this localizer does not know the class {name!r}{suggest(name, self.classes)}")
        return label

    def _locate(
        self, image: NDArray[np.uint8], labels: list[int], scores: list[float], maps: NDArray[np.float64]
    ) -> Localization:
        size = image.shape[1], image.shape[0]
        found: list[Found] = []
        for label, score, raw in zip(labels, scores, maps, strict=True):
            scorer = ImageScorer(raw, (), size, self.view)
            boxes = scorer.find(self.protocol, np.array([self.threshold]))
            box = to_original(self.protocol, self.view, boxes.boxes[0], size).clip(*size)
            found.append(Found(label, self.classes[label], score, box, bool(boxes.empty[0])))
            if len(found) == 1:
                heat = scorer.score_map(self.protocol)
        return Localization(image, found, heat, self.view.region(size))


def load(run: Path | str, threshold: float | None = None, device: str = "auto") -> Finder:
    """The trained localizer of a run folder, ready to be called with a photo.

    threshold: in [0, 1); None takes the one chosen on held-out training images, where the run was evaluated
    with some, else that of the run's protocol.
    """
    return finder_of(load_run(run, device), threshold)


def finder_of(run: LoadedRun, threshold: float | None = None) -> Finder:
    """The same for a run that is already loaded."""
    protocol = find_protocols([run.config.eval.protocol])[0]
    if threshold is None:
        threshold = default_threshold(run.path, protocol)
    elif not 0 <= threshold < 1:
        raise ConfigError(f"threshold {threshold} is outside 0 to 1")
    return Finder(
        run.localizer, run.classes, protocol, threshold, View(protocol.view, run.config.data.image_size)
    )


def as_array(photo: Photo) -> NDArray[np.uint8]:
    """A photo as (H, W, 3) uint8 RGB."""
    with quiet_decoder():
        return to_rgb(photo)
