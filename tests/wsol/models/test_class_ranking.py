"""The map at test from the maps of several classes, for every head."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from wsol.config import Backbone, Head, Model
from wsol.config_file import config_from_dict, config_to_dict
from wsol.data.hierarchy import Hierarchy
from wsol.errors import ConfigError
from wsol.models.class_ranking import rank_weights
from wsol.models.export import Exported
from wsol.models.localizer import Localizer, build_localizer
from wsol.notices import WsolNote
from wsol.registry import HEADS

CLASSES = 6
TREE = Hierarchy.from_table(("species", "family"), [(f"s{i}", f"f{i // 2}") for i in range(CLASSES)])
IMAGES = torch.rand(3, 3, 64, 64, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([[0, 5], [3, 3], [1, 2]])


def build(name: str, **settings: Any) -> Localizer:
    torch.manual_seed(0)
    narrow = {"channels": 8} if "channels" in HEADS.options(name) else {}
    head = Head.of(name, **narrow, **settings)
    return build_localizer(Model(Backbone.of("tiny"), weights="none", head=head), CLASSES, TREE).eval()


@pytest.mark.parametrize(
    ("settings", "weights"),
    [
        ({"maps": "topk", "topk": 2}, [1 / 2, 1 / 2, 0, 0, 0, 0]),
        ({"maps": "topk"}, [1 / 6] * 6),
        ({"maps": "combined"}, [1, 1 / 4, 0, 0, -1 / 4, -1]),
    ],
)
@pytest.mark.parametrize("name", [name for name in HEADS.entries() if Head.of(name).knows_classes])
def test_any_head(name: str, settings: dict[str, Any], weights: list[float]) -> None:
    single, joined = build(name, maps="class"), build(name, **settings)
    with torch.no_grad():
        output = single(IMAGES)
        every = single.maps_for(output, torch.arange(CLASSES).expand(3, -1)).numpy()
        maps = joined.maps_for(joined(IMAGES), LABELS)
        one = joined.maps_for(joined(IMAGES), LABELS[:, 0])
    assert list(joined.state_dict()) == list(single.state_dict())
    assert maps.shape == (3, 2, *every.shape[2:])
    for i in range(3):
        order = sorted(range(CLASSES), key=lambda c: -output.logits[i, c].item())
        expected = sum(w * every[i, c] for w, c in zip(weights, order, strict=True))
        for found in (maps[i, 0], maps[i, 1], one[i]):
            np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


def test_nl_ccam_over_200_classes() -> None:
    weights = rank_weights("combined", 200)
    assert weights is not None
    best, worst = np.linspace(1, 0, 100) ** 2, -(np.linspace(0, 1, 100) ** 2)
    np.testing.assert_allclose(weights.numpy(), np.concatenate([best, worst]), atol=1e-6)


def test_what_is_usual() -> None:
    assert build("cam").rank_weights is None
    usual = build("bas").rank_weights
    assert usual is not None
    assert usual.tolist() == pytest.approx([1 / CLASSES] * CLASSES)


def test_more_classes_than_there_are_is_all_of_them_and_said() -> None:
    with pytest.warns(WsolNote, match="topk: 80 is more than the 6 classes that there are; all are taken"):
        localizer = build("bas", topk=80)
    assert localizer.rank_weights is not None
    assert len(localizer.rank_weights) == CLASSES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build("bas", topk=CLASSES)


def test_a_config_says_it() -> None:
    config = config_from_dict({"model": {"head": {"name": "bas", "topk": 3, "beta": 1}}})
    assert (config.model.head.map_kind, config.model.head.topk) == ("topk", 3)
    assert config.model.head.options == {"beta": 1.0}
    assert config_from_dict(config_to_dict(config)) == config


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ({"maps": "topp"}, r"model\.head\.maps: .* did you mean 'topk'"),
        ({"topk": 3}, r"model\.head\.topk: needs `maps: topk`, and the maps here are 'class'"),
        ({"name": "bas", "maps": "combined", "topk": 3}, "the maps here are 'combined'"),
        ({"name": "bas", "topk": 0}, r"model\.head\.topk: 0 classes make no map"),
    ],
)
def test_refuses(head: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config_from_dict({"model": {"head": head}})


@pytest.mark.parametrize("name", ["bas", "acol"])
@pytest.mark.long
def test_the_exported_program_has_the_same_maps(name: str) -> None:
    localizer = build(name, **({"topk": 3} if name == "bas" else {}))
    model = Exported(localizer, CLASSES).eval()
    images = (255 * IMAGES).to(torch.uint8)
    with torch.no_grad():
        shapes = {"images": {0: torch.export.Dim("batch")}}
        program = torch.export.export(model, (images[:2],), dynamic_shapes=shapes, strict=True)
        logits, maps = program.module()(images)
        expected = localizer.maps_for(localizer(images), torch.arange(CLASSES).expand(3, -1))
    torch.testing.assert_close(maps, expected)
    assert logits.shape == (3, CLASSES)
