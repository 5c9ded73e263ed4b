from __future__ import annotations

import math
from collections import Counter

import pytest

from wsol.errors import ConfigError
from wsol.scoring.published import TABLES, published_nll, published_results
from wsol.scoring.published.figures import comparable_metrics
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


def test_a_figure_that_is_quoted_is_marked_as_where_it_comes_from() -> None:
    rows = published_results()
    quoted = [r for r in rows if r.source == "GPCA paper, quoted"]
    checked = set()
    for own in quoted:
        for other in (r for r in rows if r.source == "its paper"):
            if (own.backbone, own.method) == (other.backbone, other.method):
                assert own.figures["top1_loc"].mean == other.figures["top1_loc"].mean
                assert own.chosen == other.chosen
                checked.add(own.method)
    assert checked == {"ADL", "DANet"}


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


# Rows of each backbone, counted in the paper.
COUNTS = {
    "cifar10": {"vgg16": 7, "resnet50": 11, "densenet40": 11, "densenet_bc100": 11},
    "cifar100": {"vgg16": 7, "resnet50": 11, "densenet40": 11, "densenet_bc100": 11},
    "miniimagenet": {"vgg16": 10, "resnet18": 11, "resnet34": 11},
    "imagenet32": {"vgg16": 7, "resnet18": 11, "resnet34": 11},
    "imagenet": {"resnet18": 5, "resnet50": 8},
    "ablation": {"vgg16": 16, "resnet50": 8, "resnet18": 8, "resnet34": 8},
    "simplified": {"resnet50": 9},
    "voc": {"ssd300": 6, "ssd512": 6},
    "coco": {"fcos": 4, "atss": 4},
    "cityscapes": {"hrnet_w18": 5, "hrnet_w48": 5},
}


def test_every_other_table_of_the_paper_is_whole() -> None:
    assert set(COUNTS) == set(TABLES) - {"cub"}
    labels = comparable_metrics()
    for table, counts in COUNTS.items():
        results = published_results(table)
        assert dict(Counter(r.backbone for r in results)) == counts, table
        assert len({(r.data, r.backbone, r.method, r.source) for r in results}) == len(results), table
        for result in results:
            assert result.figures, result
            assert set(result.figures) <= set(labels)
            quoted = "quoted" in result.source
            for name, figure in result.figures.items():
                assert 20 < figure.mean < 100
                assert (figure.n == 1) == quoted
                assert math.isnan(figure.std) == (quoted or (table == "voc" and name != "map"))
            assert set(result.figures) == set(results[0].figures) or table == "simplified"


@pytest.mark.parametrize(
    ("table", "data", "backbone", "method", "figures"),
    [
        ("cifar10", "cifar10", "vgg16", "CBAM-S", {"top1_cls": (94.12, 0.10)}),
        ("cifar10", "cifar10", "resnet50", "GPCA", {"top1_cls": (94.93, 0.01)}),
        ("cifar10", "cifar10", "densenet_bc100", "OA", {"top1_cls": (94.47, 0.20)}),
        ("cifar100", "cifar100", "resnet50", "NLNet", {"top1_cls": (71.31, 1.65)}),
        ("cifar100", "cifar100", "densenet40", "GPCA", {"top1_cls": (73.02, 0.19)}),
        ("cifar100", "cifar100", "densenet_bc100", "SRP", {"top1_cls": (78.31, 0.21)}),
        ("miniimagenet", "miniimagenet", "resnet34", "NLNet", {"top1_cls": (78.48, 0.2)}),
        ("miniimagenet", "miniimagenet", "vgg16", "GPCA", {"top1_cls": (82.78, 0.01)}),
        ("imagenet32", "imagenet32", "resnet34", "NLNet", {"top5_cls": (74.65, 0.32)}),
        ("imagenet32", "imagenet32", "vgg16", "ECA", {"top1_cls": (41.89, 0.06), "top5_cls": (64.45, 0.18)}),
        ("imagenet", "imagenet", "resnet50", "SRP", {"top1_cls": (77.42, None), "top5_cls": (93.79, None)}),
        ("imagenet", "imagenet", "resnet18", "GPCA", {"top1_cls": (71.61, 0.10), "top5_cls": (90.90, 0.13)}),
        ("ablation", "imagenet32", "resnet18", "GPCA without prior", {"top1_cls": (47.37, 0.13)}),
        ("ablation", "cifar100", "resnet50", "GPCA fixed theta", {"top1_cls": (73.84, 0.05)}),
        ("simplified", "cifar100", "resnet50", "GPCA-Local", {"top1_cls": (72.02, 0.15)}),
        ("simplified", "imagenet", "resnet50", "GPCA-MHA", {"top5_cls": (93.38, 0.26)}),
        ("voc", "voc2007", "ssd300", "GCT", {"map": (69.75, 0.22), "ap_chair": (51.24, None)}),
        ("voc", "voc2007+2012+coco", "ssd512", "GPCA", {"map": (81.92, 0.11), "ap_tv": (82.10, None)}),
        ("coco", "coco", "atss", "SE", {"ap": (38.95, 0.07), "ap_large": (50.15, 0.07)}),
        ("coco", "coco", "fcos", "GPCA", {"ap": (38.50, 0.20), "ap_small": (22.17, 0.29)}),
        ("cityscapes", "cityscapes", "hrnet_w48", "GPCA", {"miou": (80.65, 0.13), "macc": (88.07, 0.32)}),
    ],
)  # fmt: skip
def test_figures_as_printed(
    table: str, data: str, backbone: str, method: str, figures: dict[str, tuple[float, float | None]]
) -> None:
    (row,) = [
        r for r in published_results(table) if (r.data, r.backbone, r.method) == (data, backbone, method)
    ]
    for name, (mean, std) in figures.items():
        found = row.figures[name]
        assert (found.mean, None if math.isnan(found.std) else found.std) == (mean, std)


def test_rows_that_the_paper_prints_under_another_network_say_so() -> None:
    noted = [(t, r.method) for t in ("cifar10", "imagenet32") for r in published_results(t) if r.note]
    assert noted == [("cifar10", m) for m in ("CBAM-S", "SRP", "OA")] + [("imagenet32", "NLNet")]


def test_the_papers_star_on_cifar_follows_from_its_figures() -> None:
    rows = {r.method: r for r in published_results("cifar10") if r.backbone == "resnet50"}
    p = p_value(rows["GPCA"].figures["top1_cls"], rows["GCT"].figures["top1_cls"])
    assert p is not None
    assert p < 0.05


def test_an_unknown_table_names_the_near_ones() -> None:
    with pytest.raises(ConfigError, match="no published table 'cifar'; did you mean"):
        published_results("cifar")
