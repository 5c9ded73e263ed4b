"""What flows between the rooms: small typed records without behaviour.

Boxes are x0, y0, x1, y1 floats in pixels of the original image; x1 and y1 lie outside the object, so a box
that covers a whole image of width W and height H is (0, 0, W, H).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

    from wsol.data.hierarchy import Hierarchy

SPLITS = ("train", "val", "test")


class Box(NamedTuple):
    """An upright rectangle, in pixels of the original image."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.y1 - self.y0

    @property
    def area(self) -> float:
        return max(self.width, 0.0) * max(self.height, 0.0)

    def clip(self, width: float, height: float) -> Box:
        """The part of the box inside an image of that size."""
        return Box(
            min(max(self.x0, 0.0), width),
            min(max(self.y0, 0.0), height),
            min(max(self.x1, 0.0), width),
            min(max(self.y1, 0.0), height),
        )


@dataclass(frozen=True)
class Sample:
    """One image of a data set with what is known of it.

    `name` is the path below the images folder, unique in the data set and used as the key everywhere.
    `size` is (width, height) as the file's header says after EXIF rotation, None where it cannot be read.
    """

    name: str
    path: Path
    label: int
    boxes: tuple[Box, ...]
    split: str
    size: tuple[int, int] | None = None
    segmentation_path: Path | None = None


@dataclass(frozen=True)
class DataIndex:
    """A data set as the toolkit sees it: samples, class names by label, and perhaps a hierarchy.

    `images_dir` is the folder that holds the images and nothing else, None where that is `root` itself.
    """

    name: str
    root: Path
    samples: tuple[Sample, ...]
    classes: tuple[str, ...]
    hierarchy: Hierarchy | None = field(default=None, compare=False)
    images_dir: Path | None = None

    def split(self, name: str) -> tuple[Sample, ...]:
        """The samples of `train`, `val` or `test`, in the order of the data set."""
        return tuple(s for s in self.samples if s.split == name)

    def with_samples(self, samples: Sequence[Sample]) -> DataIndex:
        return replace(self, samples=tuple(samples))

    def test_digest(self, split: str = "test") -> str:
        """What identifies the images that are scored and their truth, however the others are split."""
        return digest_truths(self.classes, ((s.name, s.label, s.boxes) for s in self.split(split)))

    def digest(self) -> str:
        """SHA-256 over names, labels, splits and boxes, the same for equal annotations in any folder."""
        sha = hashlib.sha256()
        for name in self.classes:
            sha.update(f"class {name}\n".encode("utf-8", "surrogateescape"))
        for s in sorted(self.samples, key=lambda s: s.name):
            boxes = " ".join(f"{v:.3f}" for box in s.boxes for v in box)
            sha.update(f"{s.name} {s.label} {s.split} {boxes}\n".encode("utf-8", "surrogateescape"))
        return sha.hexdigest()


def digest_truths(classes: Sequence[str], rows: Iterable[tuple[str, int, Sequence[Sequence[float]]]]) -> str:
    """SHA-256 over class names and the name, label and boxes of every image, in any order of the images."""
    sha = hashlib.sha256()
    for name in classes:
        sha.update(f"class {name}\n".encode("utf-8", "surrogateescape"))
    for name, label, boxes in sorted(rows, key=lambda row: row[0]):
        values = " ".join(f"{v:.3f}" for box in boxes for v in box)
        sha.update(f"{name} {label} {values}\n".encode("utf-8", "surrogateescape"))
    return sha.hexdigest()


class LocalizerOutput(NamedTuple):
    """What a localizer returns for a batch.

    logits: (N, classes). maps: (N, classes, H, W), one class map for each class, after the attention.
    extras: whatever else the head needs for its losses or its test map.
    """

    logits: torch.Tensor
    maps: torch.Tensor
    extras: Mapping[str, Any]
