"""examples/detection: SSD300 and FCOS with attention, on painted birds, judged by pycocotools."""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import wsol

pytest.importorskip("pycocotools", reason="pycocotools is not installed")

MODULES = ("boxes", "birds", "detectors", "judging", "run", "voc_as_coco")


@pytest.fixture(scope="module")
def example(repository: Path) -> Iterator[SimpleNamespace]:
    """The modules of the example, which import each other by their plain names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(repository / "examples" / "detection"))
        for name in MODULES:
            patch.delitem(sys.modules, name, raising=False)
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
        for name in MODULES:
            sys.modules.pop(name)


@pytest.fixture(scope="module")
def birds(example: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    parts: dict[str, Any] = example.birds.paint_boxes(
        tmp_path_factory.mktemp("painted"), species=2, train=2, test=3, size=96
    )
    return parts


def test_boxes_are_those_of_the_birds(example: SimpleNamespace, birds: dict[str, Any]) -> None:
    data = example.boxes.Boxes(*birds["test"])
    samples = wsol.open_dataset(birds["test"][0]).split("test")
    assert len(data) == len(samples) == 6
    assert len(data.names) == 2
    assert not any("_" in name for name in data.names)
    for (image, target), sample in zip(data, samples, strict=True):
        assert image.dtype == torch.float32
        assert 0 <= image.min() < image.max() <= 1
        assert image.shape[:0:-1] == sample.size
        np.testing.assert_allclose(target["boxes"], np.array(sample.boxes), rtol=1e-6)
        assert target["labels"].tolist() == [sample.label + 1]


def found_from(data: Any, shift: float = 0.0, other: bool = False) -> list[dict[str, Any]]:
    """The truth as results, moved to the right by a share of its width, or under another class."""
    results = []
    for one in data.coco.loadAnns(data.coco.getAnnIds()):
        x, y, width, height = one["bbox"]
        category = 3 - one["category_id"] if other else one["category_id"]
        box = [x + shift * width, y, width, height]
        results.append(
            {"image_id": one["image_id"], "category_id": category, "bbox": box, "score": 0.9},
        )
    return results


def test_the_judge(example: SimpleNamespace, birds: dict[str, Any]) -> None:
    data = example.boxes.Boxes(*birds["test"])
    figures, classes = example.judging.judge(data, found_from(data))
    assert (figures["AP"], figures["AP50"], figures["AP75"]) == pytest.approx((100, 100, 100))
    assert dict.fromkeys(data.names, 100.0) == pytest.approx(classes)
    assert math.isnan(figures["AP large"])  # 96 pixels and more: none is as large
    # An overlap of 9 in 11 parts, 0.818: right at IoU 0.50 to 0.80, which are seven of ten.
    figures, _ = example.judging.judge(data, found_from(data, shift=0.1))
    assert (figures["AP"], figures["AP75"]) == pytest.approx((70, 100))
    for wrong in (found_from(data, other=True), []):
        figures, classes = example.judging.judge(data, wrong)
        assert figures["AP"] == 0
        assert set(classes.values()) == {0.0}


VOC = """<annotation><size><width>20</width><height>10</height></size>
<object><name>dog</name><difficult>0</difficult>
  <bndbox><xmin>3</xmin><ymin>1</ymin><xmax>12</xmax><ymax>10</ymax></bndbox></object>
<object><name>cat</name><difficult>1</difficult>
  <bndbox><xmin>13</xmin><ymin>1</ymin><xmax>20</xmax><ymax>10</ymax></bndbox></object></annotation>"""


def test_voc(example: SimpleNamespace, tmp_path: Path) -> None:
    """Boxes count from 0; what is difficult is learned, and is neither missed nor wrong at test."""
    for folder in ("ImageSets/Main", "Annotations", "JPEGImages"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ImageSets" / "Main" / "test.txt").write_text("000001\n")
    (tmp_path / "Annotations" / "000001.xml").write_text(VOC)
    Image.new("RGB", (20, 10)).save(tmp_path / "JPEGImages" / "000001.jpg")
    read = example.voc_as_coco.read_voc(tmp_path, "test")
    assert [category["name"] for category in read["categories"]][:2] == ["aeroplane", "bicycle"]
    (tmp_path / "test.json").write_text(json.dumps(read))
    data = example.boxes.Boxes(tmp_path / "JPEGImages", tmp_path / "test.json", augment=())
    ((_, target),) = data
    assert sorted(target["labels"].tolist()) == [8, 12]
    boxes = {tuple(box) for box in target["boxes"].tolist()}
    assert boxes in ({(2, 0, 12, 10), (12, 0, 20, 10)}, {(8, 0, 18, 10), (0, 0, 8, 10)})  # or flipped
    for score in (0.1, 0.99):  # a find of the difficult cat, below and above the dog's
        cat = {"image_id": 1, "category_id": 8, "bbox": [12, 0, 8, 10], "score": score}
        dog = {"image_id": 1, "category_id": 12, "bbox": [2, 0, 10, 10], "score": 0.5}
        figures, classes = example.judging.judge(data, [cat, dog])
        assert figures["AP50"] == pytest.approx(100)
        assert classes["dog"] == pytest.approx(100)
        assert math.isnan(classes["cat"])


def test_images_without_boxes(example: SimpleNamespace, birds: dict[str, Any], tmp_path: Path) -> None:
    """They are not trained on, and are looked at in a test."""
    folder, file = birds["test"]
    content = json.loads(file.read_text())
    content["annotations"] = content["annotations"][1:]
    fewer = tmp_path / "fewer.json"
    fewer.write_text(json.dumps(content))
    assert len(example.boxes.Boxes(folder, fewer, augment=())) == 5
    at_test = example.boxes.Boxes(folder, fewer)
    assert len(at_test) == 6
    assert at_test[0][1]["boxes"].shape == (0, 4)
    fewer.write_text(json.dumps({**content, "annotations": []}))
    with pytest.raises(ValueError, match="has no images with boxes"):
        example.boxes.Boxes(folder, fewer, augment=())


def test_one_part_of_the_data_alone_is_refused(
    example: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        example.run.main(["fcos", "--train", "images", "boxes.json"])
    assert "give both --train and --test" in capsys.readouterr().err


@pytest.mark.long
def test_fcos_learns(example: SimpleNamespace, birds: dict[str, Any]) -> None:
    """A few steps: the loss falls, theta moves and has no weight decay, and what is found can be judged."""
    torch.manual_seed(0)
    model, inserted = example.detectors.build_detector("fcos", 2, "gpca", sides=(64, 64), reading="unit-gain")
    assert inserted.names == tuple(f"backbone.attention.{level}" for level in ("0", "1", "2", "p6", "p7"))
    groups = {
        group["weight_decay"]: group["params"] for group in example.run.parameter_groups(model, inserted)
    }
    assert sum(p.numel() for p in groups[0.0]) == inserted.parameters == 25
    assert sum(map(len, groups.values())) == len(list(model.parameters()))
    before = {name: dict(a.scalars()) for name, a in inserted.attentions.items()}
    data = example.boxes.Boxes(*birds["train"], augment=())
    settings = {"steps": 8, "batch": 2, "rate": 0.01, "drops": (0.9,)}
    losses = example.run.train(model, inserted, data, **settings)
    assert len(losses) == 8
    assert np.mean(losses[-2:]) < np.mean(losses[:2])
    for name in inserted.names[:3]:  # the others are on maps of 1x1 here, where no bird belongs
        assert inserted.attentions[name].scalars() != before[name]
    figures, _ = example.judging.judge(data, example.judging.detect(model, data))
    assert 0 <= figures["AP"] <= 100


@pytest.mark.long
@pytest.mark.parametrize(("detector", "number"), [("fcos", 5), ("ssd300", 1)])
def test_the_whole_example(
    example: SimpleNamespace,
    detector: str,
    number: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = tmp_path / "results.json"
    sizes = ["--birds", "1", "--steps", "1", "--batch", "1", "--sides", "64", "64"]
    example.run.main([detector, "--attention", "se", *sizes, "--results", str(results)])
    said = capsys.readouterr().out
    assert f"3 images to train, 3 to test, 3 classes; Insertion: {number} SE attention" in said
    assert "step 1 of 1: loss " in said
    assert said.count(": mask 0.") == number
    assert "AP50 of each class: " in said
    assert all(one["score"] <= 1 for one in json.loads(results.read_text()))


@pytest.mark.long
def test_the_attention_of_ssd_follows_conv5_3(example: SimpleNamespace) -> None:
    """The place that the paper names, counted from the front of VGG16."""
    model, inserted = example.detectors.build_detector("ssd300", 2, "identity")
    assert inserted.names == ("backbone.extra.0.6.attention",)
    convolutions = [
        (name, layer) for name, layer in model.backbone.named_modules() if isinstance(layer, nn.Conv2d)
    ]
    names = [name for name, _ in convolutions]
    assert names.index("extra.0.5") == 12  # the thirteenth of VGG16: conv5_3
    assert next(iter(inserted.attentions.values())).channels == 512
