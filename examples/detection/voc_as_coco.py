"""The boxes of PASCAL VOC as a file in COCO's format.

    python examples/detection/voc_as_coco.py VOCdevkit/VOC2007 trainval voc2007_trainval.json

Images are named by their files below JPEGImages. Objects that VOC calls difficult are marked as crowds, which
pycocotools neither counts as missed nor as wrong, and as `difficult`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable"),
    *("dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)


def read_voc(root: Path, split: str) -> dict[str, Any]:
    """Images, annotations and categories of a split: trainval, test and so on."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, line in enumerate(
        (root / "ImageSets" / "Main" / f"{split}.txt").read_text().split(), start=1
    ):
        tree = ElementTree.parse(root / "Annotations" / f"{line}.xml")
        width, height = (int(tree.findtext(f"size/{side}", "0")) for side in ("width", "height"))
        images.append({"id": number, "file_name": f"{line}.jpg", "width": width, "height": height})
        for element in tree.iter("object"):
            difficult = int(element.findtext("difficult", "0"))
            # Pixels count from 1 there, and the last one belongs to the object.
            x0, y0, x1, y1 = (
                float(element.findtext(f"bndbox/{edge}", "0")) for edge in ("xmin", "ymin", "xmax", "ymax")
            )
            box = [x0 - 1, y0 - 1, x1 - x0 + 1, y1 - y0 + 1]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": CLASSES.index(element.findtext("name", "")) + 1,
                    "bbox": box,
                    "area": box[2] * box[3],
                    "iscrowd": difficult,
                    "difficult": difficult,
                }
            )
    categories = [{"id": number, "name": name} for number, name in enumerate(CLASSES, start=1)]
    return {"images": images, "annotations": annotations, "categories": categories}


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    root, split, out = sys.argv[1:]
    try:
        Path(out).write_text(json.dumps(read_voc(Path(root), split)))
    except OSError as error:
        sys.exit(f"error: {error}")
