"""DDT's head against a plain principal component analysis of all descriptors at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wsol.config import Config, Model
from wsol.config import Head as HeadConfig
from wsol.errors import ConfigError, DataError
from wsol.models.heads.ddt import DDT
from wsol.models.localizer import build_localizer
from wsol.models.moments import Moments
from wsol.models.principal_direction import PrincipalDirection

PLAIN = {"backbone": {"name": "tiny"}, "weights": "none"}


def features(seed: int, images: int = 6, channels: int = 5, side: int = 7) -> torch.Tensor:
    """Descriptors with an object: a bump that moves from image to image, along one direction."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(images, channels, side, side))
    along = rng.normal(size=channels)
    for i in range(images):
        top, left = rng.integers(1, side - 4, 2)
        x[i, :, top : top + 3, left : left + 3] += 6 * (along / np.linalg.norm(along))[:, None, None]
    return torch.from_numpy(x)


def by_hand(x: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """(mean, direction up to its sign) by the singular values of all centred descriptors."""
    flat = x.permute(0, 2, 3, 1).reshape(-1, x.shape[1]).numpy()
    _, _, directions = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    return flat.mean(axis=0), directions[0]


def direction_of(x: torch.Tensor, batch: int = 6) -> PrincipalDirection:
    total = Moments.total(Moments.of(part) for part in x.split(batch))
    assert total is not None
    return PrincipalDirection.of(total)


def ddt() -> DDT:
    head = build_localizer(Model(**_model()), 3).head
    assert isinstance(head, DDT)
    return head


def _model() -> dict[str, Any]:
    config = Config.read({"model": {**PLAIN, "head": "ddt"}})
    return {"backbone": config.model.backbone, "weights": "none", "head": HeadConfig.of("ddt")}


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), batch=st.integers(1, 6))
def test_batches_give_the_principal_direction_of_all_descriptors(seed: int, batch: int) -> None:
    x = features(seed)
    mean, expected = by_hand(x)
    found = direction_of(x, batch)
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    np.testing.assert_allclose(np.abs(found.direction @ expected), 1, atol=1e-10)
    flat = x.permute(0, 2, 3, 1).reshape(-1, 5).numpy()
    p = (flat - mean) @ found.direction
    assert found.variance == pytest.approx(p.var())
    assert found.explained == pytest.approx(p.var() / flat.var(axis=0).sum())
    of_images = p.reshape(6, -1)
    assert found.within == pytest.approx(1 - of_images.mean(axis=1).var() / p.var())
    raw = of_images.mean(axis=0).var() / p.var()
    assert found.by_place == pytest.approx(max((6 * raw - 1) / 5, 0), abs=1e-12)


def test_a_large_mean_costs_no_digits() -> None:
    x = features(3)
    far = direction_of(x + 1e6, batch=1)
    np.testing.assert_allclose(far.direction, direction_of(x).direction, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(0.1, 100), shift=st.floats(-50, 50))
def test_scale_shift_order_and_mirroring_do_not_matter(seed: int, scale: float, shift: float) -> None:
    x = features(seed)
    found = direction_of(x)
    same = {
        "scaled and shifted": scale * x + shift,
        "in another order": x.flip(0),
        "mirrored": x.flip(3),
        "twice": torch.cat([x, x]),
    }
    for how, changed in same.items():
        np.testing.assert_allclose(direction_of(changed).direction, found.direction, atol=1e-6, err_msg=how)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000))
def test_the_sign_makes_the_inside_larger_than_the_border(seed: int) -> None:
    x = features(seed)
    for signed in (x, -x):
        found = direction_of(signed)
        p = ((signed.permute(0, 2, 3, 1).numpy() - found.mean) @ found.direction).mean(axis=0)
        inside = np.zeros(p.shape, dtype=bool)
        inside[1:-1, 1:-1] = True
        assert p[inside].mean() > p[~inside].mean()


def test_a_map_without_an_inside_has_a_sign_too() -> None:
    x = features(1)[:, :, :2, :2]
    found = direction_of(x)
    assert found.direction[np.argmax(np.abs(found.direction))] > 0


def test_the_map_is_the_projection_of_the_centred_descriptors() -> None:
    head = ddt()
    x = torch.rand(2, 128, 4, 4)
    stage = head.reads[0]
    figures = head.fit([{stage: x[:1]}, {stage: x[1:]}])
    assert set(figures) == {"explained", "within", "by_place"}
    output = head({stage: x}, None, None)
    expected = torch.einsum("nchw,c->nhw", x - head.mean[:, None, None], head.direction)
    torch.testing.assert_close(output.maps[:, 0], expected, atol=1e-5, rtol=1e-5)
    assert output.maps.mean().abs() < 1e-5
    labels = torch.tensor([[7, 0], [3, 39]])
    torch.testing.assert_close(head.maps_for(output, labels)[:, 1], output.maps[:, 0])
    assert output.logits.shape == (2, 1)
    assert head.loss(output, labels[:, 0]) == {}


def test_processes_share_their_moments() -> None:
    x = features(2, channels=128, side=6).float()
    one, two = ddt(), ddt()
    stage = one.reads[0]
    one.fit([{stage: x}])
    other = Moments.of(x[4:])
    two.fit([{stage: x[:4]}], lambda own: [own, other, None])
    torch.testing.assert_close(one.direction, two.direction, atol=1e-5, rtol=1e-5)


def test_memory_does_not_grow_with_the_images() -> None:
    """What is kept of a thousand images is as large as what is kept of one."""
    total = Moments.total(Moments.of(features(i, images=1, channels=3, side=6)) for i in range(1000))
    assert total is not None
    assert total.images.number == 1000
    assert total.descriptors.scatter.shape == (3, 3)
    assert total.places.shape == (6, 6, 3)


def test_no_image_is_said() -> None:
    with pytest.raises(DataError, match="no image could be read"):
        ddt().fit([])


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (torch.ones(4, 3, 6, 6), "the same everywhere"),
        (
            torch.arange(4.0)[:, None, None, None] + 0.01 * torch.rand(4, 3, 6, 6),
            "between places of one photo",
        ),
        (torch.rand(4, 3, 6, 6) * 0.1 + torch.linspace(0, 1, 6), "the place in the photo alone"),
        (features(0)[:1], "one photo"),
    ],
)
def test_what_speaks_against_a_common_object(made: torch.Tensor, words: str) -> None:
    reason = direction_of(made).no_common_object(0.2)
    assert reason is not None
    assert words in reason


def test_nothing_speaks_against_a_bump_that_moves() -> None:
    found = direction_of(features(0, images=20, side=12))
    assert found.no_common_object(covered=0.2) is None
    assert "cover 60% of the photos" in str(found.no_common_object(covered=0.6))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"drop": "adl"}, "model.drop: the head ddt is fitted"),
        ({"attention": "se"}, "model.attention: the head ddt is fitted"),
        ({"taps": [{"name": "se", "after": "stage1"}]}, "model.taps: the head ddt is fitted"),
        ({"head": {"name": "ddt", "maps": "topk"}}, "knows no classes"),
        ({"head": {"name": "ddt", "images": 1}}, "at least 2"),
    ],
)
def test_what_does_not_fit_is_refused(model: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_localizer(Config.read({"model": {**PLAIN, "head": "ddt", **model}}).model, 3)
