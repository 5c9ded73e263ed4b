"""Images with boxes, from a file in COCO's format (https://cocodataset.org/#format-data)."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from pycocotools.coco import COCO
from torch import Tensor
from torch.utils.data import Dataset
from torchvision import tv_tensors
from torchvision.transforms import v2

Target = dict[str, Tensor]


class Boxes(Dataset[tuple[Tensor, Target]]):
    """(image, {"boxes": (n, 4) corners, "labels": (n,)}) for each image, as torchvision's detectors want it.

    Labels are 1, 2, ... in the order of the category ids; 0 is the background. Crowds are no boxes to learn;
    objects that VOC calls difficult are, as in SSD.

    augment: for training: these, and a flip; images without boxes are left out. None at test.
    """

    def __init__(self, images: Path, file: Path, augment: Sequence[v2.Transform] | None = None) -> None:
        with contextlib.redirect_stdout(io.StringIO()):  # pycocotools prints what it does
            self.coco = COCO(str(file))
        self.images = images
        self.categories: list[int] = sorted(self.coco.getCatIds())
        self.names = [category["name"] for category in self.coco.loadCats(self.categories)]
        self.ids = sorted(i for i in self.coco.getImgIds() if augment is None or self.annotations(i))
        if not self.ids:
            raise ValueError(f"{file} has no images" + (" with boxes" if augment is not None else ""))
        changes = [] if augment is None else [*augment, v2.RandomHorizontalFlip()]
        to_floats = v2.ToDtype(torch.float32, scale=True)
        self.transform = v2.Compose([v2.ToImage(), *changes, to_floats, v2.SanitizeBoundingBoxes()])

    def annotations(self, image_id: int) -> list[dict[str, Any]]:
        """Those of an image from which a detector learns."""
        found = self.coco.loadAnns(self.coco.getAnnIds(imgIds=[image_id]))
        learned = [one for one in found if not one.get("iscrowd") or one.get("difficult")]
        return [one for one in learned if min(one["bbox"][2:]) > 0]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> tuple[Tensor, Target]:
        (record,) = self.coco.loadImgs([self.ids[index]])
        with Image.open(self.images / record["file_name"]) as file:
            image = file.convert("RGB")
        found = self.annotations(record["id"])
        corners = torch.tensor([one["bbox"] for one in found], dtype=torch.float32).reshape(-1, 4)
        corners[:, 2:] += corners[:, :2]  # from [x, y, width, height]
        labels = [self.categories.index(one["category_id"]) + 1 for one in found]
        target = {
            "boxes": tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=image.size[::-1]),
            "labels": torch.tensor(labels, dtype=torch.int64),
        }
        pixels, target = self.transform(image, target)
        return pixels.as_subclass(Tensor), {key: value.as_subclass(Tensor) for key, value in target.items()}
