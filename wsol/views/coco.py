"""Boxes in the format of COCO: one JSON file that pycocotools and most annotation programs open.

https://cocodataset.org/#format-data describes it: `images`, `annotations` and `categories` with whole-number
ids from 1, a box as [x, y, width, height] in pixels. Every annotation carries its `score`, so the list of
annotations alone is also a file of results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsol.views.box_formats import PhotoBoxes


def coco_dict(found: Mapping[str, PhotoBoxes], classes: Sequence[str], description: str) -> dict[str, Any]:
    """What was found as COCO's dictionary; label c becomes category c + 1.

    found: by file name, the size of the image and what was found in it.
    """
    images = [
        {"id": i, "file_name": name, "width": width, "height": height}
        for i, (name, ((width, height), _)) in enumerate(found.items(), start=1)
    ]
    annotations = [
        {
            "image_id": i,
            "category_id": one.label + 1,
            "bbox": [one.box.x0, one.box.y0, one.box.width, one.box.height],
            "area": one.box.area,
            "iscrowd": 0,
            "score": one.score,
        }
        for i, (_, findings) in enumerate(found.values(), start=1)
        for one in findings
    ]
    return {
        "info": {"description": description},
        "licenses": [],
        "images": images,
        "annotations": [{"id": i, **a} for i, a in enumerate(annotations, start=1)],
        "categories": [{"id": i, "name": name} for i, name in enumerate(classes, start=1)],
    }
