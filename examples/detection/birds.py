"""Painted birds as a file in COCO's format. Their boxes are exact."""

from __future__ import annotations

import json
from pathlib import Path

import wsol
from wsol.class_names import display_names


def paint_boxes(folder: Path, species: int, train: int, test: int, size: int) -> dict[str, tuple[Path, Path]]:
    """Paint birds into the folder; (images, file with boxes) of "train" and "test", for `boxes.Boxes`.

    species, train, test, size: as `wsol.paint_birds` takes them.
    """
    painted = wsol.paint_birds(folder / "birds", species=species, train=train, test=test, size=size)
    birds = wsol.open_dataset(painted)
    names = display_names(birds.classes)
    categories = [{"id": number, "name": name} for number, name in enumerate(names, start=1)]
    parts = {}
    for split in ("train", "test"):
        images, annotations = [], []
        for number, sample in enumerate(birds.split(split), start=1):
            name = str(sample.path.relative_to(birds.root))
            width, height = sample.size or (0, 0)
            images.append({"id": number, "file_name": name, "width": width, "height": height})
            annotations += [
                {
                    "id": number,  # one bird in each image
                    "image_id": number,
                    "category_id": sample.label + 1,
                    "bbox": [box.x0, box.y0, box.width, box.height],
                    "area": box.area,
                    "iscrowd": 0,
                }
                for box in sample.boxes
            ]
        file = folder / f"{split}.json"
        file.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
        parts[split] = (birds.root, file)
    return parts
