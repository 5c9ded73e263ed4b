"""COCO files as pycocotools reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wsol.localization.localized import Finding
from wsol.records import Box
from wsol.views.coco import coco_dict


def test_pycocotools_reads_what_was_written(tmp_path: Path) -> None:
    coco_module = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed")
    found = {
        "a.jpg": (
            (40, 50),
            [Finding(1, "crow", 0.9, Box(1, 2, 30.5, 40)), Finding(0, "gull", 0.1, Box(0, 0, 8, 8))],
        ),
        "b.jpg": ((1, 1), []),
        "c/d.png": ((9, 9), [Finding(1, "crow", 0.5, Box(5, 5, 6, 6))]),
    }
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps(coco_dict(found, ["gull", "crow"], "test")))
    coco = coco_module.COCO(str(path))
    assert sorted(coco.getImgIds()) == [1, 2, 3]
    assert [c["name"] for c in coco.loadCats(coco.getCatIds())] == ["gull", "crow"]
    (best,) = coco.loadAnns(coco.getAnnIds(imgIds=[1], catIds=[2]))
    assert best["bbox"] == [1, 2, 29.5, 38]
    assert best["area"] == pytest.approx(29.5 * 38)
    assert coco.loadImgs([3])[0]["file_name"] == "c/d.png"
    results = coco.loadRes([{k: best[k] for k in ("image_id", "category_id", "bbox", "score")}])
    assert results.loadAnns(results.getAnnIds())[0]["score"] == 0.9
