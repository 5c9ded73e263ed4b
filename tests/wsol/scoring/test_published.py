from __future__ import annotations

import math

import pytest

from wsol.scoring.published import published_nll, published_results
from wsol.scoring.significance import p_value


def test_the_papers_table_is_whole() -> None:
    paper = [r for r in published_results() if r.source.startswith("GPCA paper")]
    count = {b: sum(r.backbone == b for r in paper) for b in ("vgg16", "mobilenet_v1", "resnet50")}
    assert count == {"vgg16": 18, "mobilenet_v1": 7, "resnet50": 10}
    for result in paper:
        quoted = "quoted" in result.source
        assert all((f.n == 1) == quoted and math.isnan(f.std) == quoted for f in result.figures.values())
        assert all(30 < f.mean < 100 for f in result.figures.values())


@pytest.mark.parametrize(
    ("backbone", "method", "figures"),
    [
        ("vgg16", "ADL-GPCA", (54.97, 69.68, 75.62, 92.77)),
        ("mobilenet_v1", "ADL-SE", (48.67, 59.07, 73.05, 91.65)),
        ("resnet50", "DGDM-GPCA", (63.22, 77.20, 75.80, 92.73)),
    ],
)
def test_headlines(backbone: str, method: str, figures: tuple[float, ...]) -> None:
    (row,) = [r for r in published_results() if (r.backbone, r.method) == (backbone, method)]
    assert tuple(row.figures[n].mean for n in ("top1_loc", "top5_loc", "top1_cls", "top5_cls")) == figures


def test_the_field_says_where_figures_are_printed_and_what_the_test_images_chose() -> None:
    field = [r for r in published_results() if not r.source.startswith("GPCA paper")]
    rows = {(r.backbone, r.method, r.source): r for r in field}
    assert len(rows) == len(field) == 35, "no row twice"
    assert all(r.source and r.figures and set(r.chosen) <= {"threshold", "checkpoint"} for r in field)
    mobilenet = rows["mobilenet_v1", "BAS-ext", "its code"]
    assert [f.mean for f in mobilenet.figures.values()] == [70.54, 86.71, 93.04]
    assert {r.chosen for r in field if r.method == "BAS-ext"} == {("threshold", "checkpoint")}
    assert "InceptionV3" in rows["vgg16", "CAM", "quoted by others"].note
    assert rows["resnet50", "few-shot baseline", "wsolevaluation"].figures["max_box_acc_v2"].mean == 82.4


def test_the_papers_stars_follow_from_its_figures() -> None:
    """ADL-SE against ADL-GPCA on ResNet50: top-1 starred, top-5 not, as printed."""
    rows = {r.method: r for r in published_results() if r.backbone == "resnet50" and "quoted" not in r.source}
    ours, other = rows["ADL-GPCA"].figures, rows["ADL-SE"].figures
    first, fifth = (p_value(ours[n], other[n]) for n in ("top1_loc", "top5_loc"))
    assert first is not None
    assert fifth is not None
    assert first < 0.05 < fifth


def test_nll_table() -> None:
    table = published_nll()
    assert len(table) == 9
    assert table["gpca", "resnet50"].mean == 3.4729
    assert table["srp", "vgg16"].std == 0.0016
