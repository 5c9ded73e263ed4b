"""The networks that `wsol classify` trains, and where attentions go in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gpca import Attention
from wsol import config
from wsol.config import Network
from wsol.errors import CheckpointError, ConfigError
from wsol.models.paper_places import paper_places
from wsol.models.summary import summarise
from wsol.models.trained_classifier import TrainedClassifier, build_classifier_to_train
from wsol.registry import NETWORKS

# Parameters for 10 classes, and how many attentions the places of the paper take. Both DenseNets' are those
# that their authors state (1.0 M and 0.8 M); docs/classification.md has this table.
NETWORKS_OF_THE_PAPER = {
    "vgg16": (14_728_266, 1),
    "resnet18": (11_173_962, 8),
    "resnet34": (21_282_122, 16),
    "resnet50": (23_520_842, 16),
    "densenet40": (1_019_722, 36),
    "densenet_bc100": (769_162, 48),
    "resnet_thin": (272_474, 9),
}


def build(name: str, attention: str = "identity", classes: int = 10, side: int = 32, **more: Any) -> Any:
    section = Network.of(name, attention=config.Attention.of(attention), **more)
    return build_classifier_to_train(section, classes, side)


def attentions(model: TrainedClassifier) -> dict[str, Attention]:
    return {name: m for name, m in model.network.named_modules() if isinstance(m, Attention)}


def test_the_table_is_whole() -> None:
    assert set(NETWORKS_OF_THE_PAPER) == {name for name in NETWORKS.entries() if not name.endswith(":")}


@pytest.mark.parametrize("name", NETWORKS_OF_THE_PAPER)
def test_parameters_and_places(name: str, repository: Path) -> None:
    parameters, places = NETWORKS_OF_THE_PAPER[name]
    plain = build(name)
    assert sum(p.numel() for p in plain.parameters()) == parameters
    assert len(paper_places(plain.network)) == places
    page = (repository / "docs" / "classification.md").read_text()
    assert f"| `{name}` | {parameters:,} | {places} |" in page


@pytest.mark.parametrize("name", ["vgg16", "densenet40", "densenet_bc100", "resnet_thin"])
def test_attentions_act_and_plain_weights_load_unrenamed(name: str) -> None:
    torch.manual_seed(0)
    plain, attended = build(name), build(name, "se")
    assert len(attentions(attended)) == NETWORKS_OF_THE_PAPER[name][1]
    missing, left_over = attended.load_state_dict(plain.state_dict(), strict=False)
    assert not left_over
    assert all(".attention." in key for key in missing)
    images = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    plain.eval(), attended.eval()
    with torch.no_grad():
        assert plain(images).logits.shape == (2, 10)
        assert not torch.allclose(plain(images).logits, attended(images).logits)
    assert len(attended.masks()) == NETWORKS_OF_THE_PAPER[name][1]
    assert not plain.masks()


def test_a_residual_block_is_attended_before_the_addition() -> None:
    """A mask of zeros leaves the short cut: the block then puts out relu(x)."""
    model = build("resnet_thin", "se", depth=8)
    assert set(attentions(model)) == {f"layer{n}.0.bn2.attention" for n in (1, 2, 3)}
    block = model.network.layer1[0].eval()
    block.bn2.attention.compute_mask = lambda x: torch.zeros(x.shape[:2])
    x = torch.randn(2, 16, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(block(x), torch.relu(x))


def test_a_dense_layer_is_attended_on_its_new_channels() -> None:
    model = build("densenet40", "se")
    assert {a.channels for a in attentions(model).values()} == {12}


@pytest.mark.parametrize("attention", ["bam", "cbam", "srp"])
def test_attentions_that_need_a_place_are_refused_on_a_map_of_1x1(attention: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^network.attention: .* cannot work on a map of 1x1; take another"
    ):
        build("vgg16", attention)


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("torchvision:mobilenet_v2", {}, "paper names no places for attentions in a MobileNetV2"),
        ("resnet_thin", {"after": ("layer9.*",)}, "no module of ThinResNet matches 'layer9"),
        ("resnet_thin", {"after": ("fc",)}, r"'fc' puts out the shape \(1, 10\), not a map"),
        ("resnet_thin", {"depth": 10}, "depth must be 6n"),
        ("torchvision:resnet5", {}, "torchvision has no classifier 'resnet5'; did you mean"),
        ("resnet51", {}, "unknown network 'resnet51'; did you mean 'resnet50'"),
        ("resnet50", {"weights": "imagenet"}, "network.weights: this network has no public weights"),
    ],
)
def test_mistakes_are_one_line(name: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as found:
        build(name, "gpca", **more)
    assert "\n" not in str(found.value)


def test_an_image_that_is_too_small_is_refused() -> None:
    with pytest.raises(ConfigError, match="timm:vit_tiny_patch16_224 cannot take images of 32x32 pixels"):
        build("timm:vit_tiny_patch16_224")


@pytest.mark.parametrize("name", ["torchvision:resnet18", "timm:resnet18", "torchvision:densenet121"])
def test_public_classifiers_know_the_places_too(name: str) -> None:
    number = 58 if "densenet" in name else 8
    assert len(attentions(build(name, "eca", classes=3, side=64))) == number


def test_weights_of_other_classes_fill_all_but_the_last_layer(tmp_path: Path) -> None:
    before = build("resnet_thin", classes=7, depth=8)
    path = tmp_path / "seven.pth"
    torch.save(before.network.state_dict(), path)
    now = build("resnet_thin", "gpca", classes=3, depth=8, weights=str(path))
    assert now.weights_report.missing == ("fc.weight", "fc.bias")
    torch.testing.assert_close(now.network.conv1.weight, before.network.conv1.weight)
    groups = {name: g.pretrained for g in now.parameter_groups() for name in g.names}
    new = {name for name, pretrained in groups.items() if not pretrained}
    assert new == {"network.fc.weight", "network.fc.bias"} | {
        f"network.{n}.raw_theta" for n in attentions(now)
    }
    other = tmp_path / "other.pth"
    torch.save(nn.Linear(2, 2).state_dict(), other)
    with pytest.raises(CheckpointError, match="a checkpoint of another network"):
        build("resnet_thin", weights=str(other))


def test_theta_is_spared_from_weight_decay() -> None:
    model = build("resnet_thin", "gpca", depth=8)
    spared = {name for g in model.parameter_groups() if not g.decay for name in g.names}
    assert spared == {f"network.{name}.raw_theta" for name in attentions(model)}
    assert "network.layer1.0.bn2.attention.theta1" in model.scalars()


def test_a_summary_counts_every_parameter_and_names_the_attentions() -> None:
    model = build("resnet_thin", "gpca", depth=14)
    summary = summarise(model, 32)
    assert summary.parameters == sum(p.numel() for p in model.parameters())
    assert {row.part: row.tap for row in summary.rows if row.tap} == {
        f"layer{n}": "2 x GPCA" for n in (1, 2, 3)
    }
    assert {row.part: row.output for row in summary.rows}["layer3"] == (64, 8, 8)
    assert summary.multiply_adds > summarise(build("resnet_thin", depth=14), 32).multiply_adds > 2e7
