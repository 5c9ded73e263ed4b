"""The common object of some photos by DDT: a direction from their features, then a box and a mask in each.

Every photo passes the network once. The direction comes from at most `FITTED` photos, taken evenly, whose
features wait in a file until it is known; the others are looked at with the direction at hand. So neither
memory nor that file grows with the number of photos.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wsol.data.photos import batch_photos, read_photos
from wsol.data.take_evenly import take_evenly
from wsol.data.transforms import View
from wsol.localization.feature_file import FeatureFile
from wsol.localization.found_object import FoundObject, locate
from wsol.models.heads.ddt import DDT
from wsol.models.localizer import Localizer
from wsol.models.moments import Moments
from wsol.models.principal_direction import PrincipalDirection

FITTED = 256  # photos that a direction comes from at most; for VGG16 at 448 px their features are 411 MB
AT_ONCE = 4  # photos in one pass through the network


@dataclass(frozen=True)
class CommonDirection:
    """The direction of a group of photos. covered: the share of all their places that lies above the cut."""

    direction: PrincipalDirection
    covered: float

    @property
    def no_common_object(self) -> str | None:
        """Why the photos have no common object; None where nothing speaks against one."""
        return self.direction.no_common_object(self.covered)

    def figures(self) -> dict[str, float]:
        return {**self.direction.figures(), "covered": self.covered}


class Discovery:
    """Finds the common object of groups of photos, one group after the other.

    localizer: one with the head `ddt`; its direction is set anew for each group. unreadable: gets the reason
    for each photo that cannot be read. step: called with the number of photos that have just passed the
    network.
    """

    def __init__(
        self,
        localizer: Localizer,
        side: int,
        unreadable: dict[str, str],
        step: Callable[[int], object] = lambda number: None,
    ) -> None:
        assert isinstance(localizer.head, DDT)
        assert localizer.head.cut is not None
        self._cut = localizer.head.cut
        self._localizer, self._head = localizer.eval(), localizer.head
        self._view = View("resize", side)
        self._unreadable, self._step = unreadable, step

    def fit(self, photos: Mapping[str, Path], kept: FeatureFile) -> CommonDirection | None:
        """The direction of the photos; None where none can be read. Their features go to `kept`."""
        chosen = {name: photos[name] for name in take_evenly(list(photos), FITTED)}

        def moments() -> Iterator[Moments]:
            for images in self._read(chosen):
                features = self._features(list(images.values()))
                for name, one in zip(images, features, strict=True):
                    kept.add(name, one.cpu().numpy())
                yield Moments.of(features)

        total = Moments.total(moments())
        if total is None:
            return None
        direction = PrincipalDirection.of(total)
        self._head.set_direction(direction)
        above = [(self._project(torch.from_numpy(kept[name])) > self._cut).mean() for name in kept.names()]
        return CommonDirection(direction, float(np.mean(above)))

    def find(
        self, photos: Mapping[str, Path], kept: FeatureFile, label: int, name: str
    ) -> Iterator[tuple[str, FoundObject]]:
        """The object in every photo that can be read, after `fit`. label, name: what it is called."""
        readable = {key: path for key, path in photos.items() if key not in self._unreadable}
        for images in self._read(readable, kept):
            new = [key for key in images if key not in kept]
            features = (
                dict(zip(new, self._features([images[key] for key in new]), strict=True)) if new else {}
            )
            for key, image in images.items():
                own = features[key] if key in features else torch.from_numpy(kept[key])
                raw = self._project(own)
                yield key, locate(raw, image, self._view, self._cut, label, name)

    def _read(
        self, photos: Mapping[str, Path], known: FeatureFile | None = None
    ) -> Iterator[dict[str, NDArray[np.uint8]]]:
        """The readable photos in small batches; the reasons for the others are kept."""
        for batch in batch_photos(photos):
            names = list(batch)
            for start in range(0, len(names), AT_ONCE):
                part = names[start : start + AT_ONCE]
                images, errors = read_photos({name: batch[name] for name in part})
                self._unreadable |= errors
                if images:
                    yield images
                self._step(sum(known is None or name not in known for name in part))

    @torch.inference_mode()
    def _features(self, images: Sequence[NDArray[np.uint8]]) -> Tensor:
        """(N, C, h, w): the stage that the head reads."""
        squares = np.stack([self._view.apply(image).transpose(2, 0, 1) for image in images])
        localizer, (stage,) = self._localizer, self._head.reads
        x = localizer.normalise(torch.from_numpy(squares).to(localizer.mean.device))
        return localizer.backbone(x, localizer.taps, (stage,))[stage].float()

    @torch.inference_mode()
    def _project(self, features: Tensor) -> NDArray[np.float32]:
        raw: NDArray[np.float32] = (
            self._head.project(features[None].to(self._head.mean.device))[0, 0].cpu().numpy()
        )
        return raw
