"""DANet's losses and fused maps against plain NumPy loops, written from their formulas."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from wsol.data.hierarchy import Hierarchy
from wsol.models.backbone import Feature, Outline
from wsol.models.heads.danet import DANet
from wsol.records import LocalizerOutput

TREE = Hierarchy.from_table(
    ("species", "family", "order"),
    [
        ("wren", "wrens", "perching"),
        ("finch", "finches", "perching"),
        ("siskin", "finches", "perching"),
        ("mallard", "ducks", "waterfowl"),
        ("teal", "ducks", "waterfowl"),
    ],
)
FAMILY, ORDER = [0, 1, 1, 2, 2], [0, 0, 0, 1, 1]  # of the five species
FEATURES = (Feature("s8", 6, 8), Feature("s16", 8, 16), Feature("s32", 8, 16))
K = 4


def make_head(fuse: Literal["ancestors", "ranked"] = "ancestors") -> DANet:
    torch.manual_seed(0)
    outline = Outline({f.name: f for f in FEATURES}, FEATURES, {}, 0.9)
    head = DANet(outline, 5, TREE, lambda _: nn.Identity(), maps_per_class=K, fuse=fuse, channels=8)
    return head.double()


def no_tail(stage: str, x: Tensor, *, taps: bool = True, detached: bool = False) -> Tensor:
    raise AssertionError("DANet runs no stage twice")


def run(head: DANet) -> LocalizerOutput:
    generator = torch.Generator().manual_seed(1)
    sizes = ((6, 9, 7), (8, 5, 4), (8, 5, 4))
    features = {
        f.name: torch.randn(3, *size, generator=generator, dtype=torch.float64)
        for f, size in zip(FEATURES, sizes, strict=True)
    }
    output: LocalizerOutput = head(features, None, no_tail)
    return output


def enlarged(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Bilinear, corners aligned."""
    h, w = image.shape
    out = np.zeros((height, width))
    for y, x in itertools.product(range(height), range(width)):
        sy = y * (h - 1) / (height - 1)
        sx = x * (w - 1) / (width - 1)
        y0, x0 = min(int(sy), h - 2), min(int(sx), w - 2)
        fy, fx = sy - y0, sx - x0
        top = image[y0, x0] * (1 - fx) + image[y0, x0 + 1] * fx
        bottom = image[y0 + 1, x0] * (1 - fx) + image[y0 + 1, x0 + 1] * fx
        out[y, x] = top * (1 - fy) + bottom * fy
    return out


def cross_entropy(logits: np.ndarray, labels: list[int]) -> float:
    terms = [math.log(np.exp(row).sum()) - row[y] for row, y in zip(logits, labels, strict=True)]
    return float(np.mean(terms))


def raw_maps(output: LocalizerOutput) -> dict[str, np.ndarray]:
    return {level: output.extras[f"raw/{level}"].detach().numpy() for level in ("order", "family", "species")}


def test_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    head = make_head()
    output = run(head)
    raw = raw_maps(output)
    species = [4, 0, 2]
    truth = {"order": [ORDER[s] for s in species], "family": [FAMILY[s] for s in species], "species": species}
    picks = [0, 3, 5, 6, 9, 11]  # of the 3 levels times K maps, level by level from the coarsest
    asked: list[tuple[int, int]] = []

    def fixed(count: int, total: int) -> Tensor:
        asked.append((count, total))
        return torch.tensor(picks)

    monkeypatch.setattr(head, "pick", fixed)
    losses = head.loss(output, torch.tensor(species))
    assert asked == [(3 * K // 2, 3 * K)]

    for level, labels in truth.items():
        logits = raw[level].mean(axis=2).mean(axis=(2, 3))
        assert losses[level].item() == pytest.approx(0.5 * cross_entropy(logits, labels), abs=1e-12)

    total = 0.0
    for image in range(3):
        maps = [
            enlarged(raw[level][image, labels[image], k], 9, 7)
            for level, labels in truth.items()
            for k in range(K)
        ]
        chosen = [maps[p] for p in picks]
        cosines = [
            (a * b).sum() / math.sqrt((a**2).sum() * (b**2).sum() + 1e-8)
            for a, b in itertools.combinations(chosen, 2)
        ]
        total += abs(sum(cosines))
    pairs = len(picks) * (len(picks) - 1) // 2
    assert losses["divergence"].item() == pytest.approx(0.01 * total / (3 * pairs), rel=1e-9)


def test_losses_of_mixed_labels_are_weighted_means() -> None:
    head = make_head()
    output = run(head)
    pairs = [(0.3, torch.tensor([4, 0, 2])), (0.7, torch.tensor([1, 3, 3]))]
    head.seed(1)
    mixed = head.loss(output, pairs)
    parts = []
    for _, labels in pairs:
        head.seed(1)  # the same maps are compared for both
        parts.append(head.loss(output, labels))
    for name, value in mixed.items():
        assert value.item() == pytest.approx(0.3 * parts[0][name].item() + 0.7 * parts[1][name].item())


def fused_reference(raw: dict[str, np.ndarray], image: int, chosen: dict[str, int]) -> np.ndarray:
    total = np.zeros((9, 7))
    for level, label in chosen.items():
        total += enlarged(np.maximum(raw[level][image, label], 0).mean(axis=0), 9, 7)
    return total


def test_fused_maps_of_the_ancestors() -> None:
    head = make_head()
    output = run(head)
    raw = raw_maps(output)
    labels = torch.tensor([[4, 1], [0, 2], [3, 3]])
    maps = head.maps_for(output, labels).detach().numpy()
    assert maps.shape == (3, 2, 9, 7)
    for image, place in itertools.product(range(3), range(2)):
        s = int(labels[image, place])
        chosen = {"order": ORDER[s], "family": FAMILY[s], "species": s}
        np.testing.assert_allclose(maps[image, place], fused_reference(raw, image, chosen), atol=1e-12)
    np.testing.assert_allclose(head.maps_for(output, labels[:, 0]).detach().numpy(), maps[:, 0], atol=0)


def test_fused_maps_by_rank() -> None:
    head = make_head("ranked")
    output = run(head)
    raw = raw_maps(output)
    labels = torch.tensor([[0, 1, 2, 3, 4]] * 3)
    maps = head.maps_for(output, labels).detach().numpy()
    for image in range(3):
        ranking = {level: np.argsort(-r[image].mean(axis=(1, 2, 3))) for level, r in raw.items()}
        for species in range(5):
            rank = int(np.flatnonzero(ranking["species"] == species)[0])
            chosen = {level: int(order[min(rank, len(order) - 1)]) for level, order in ranking.items()}
            np.testing.assert_allclose(maps[image, species], fused_reference(raw, image, chosen), atol=1e-12)
