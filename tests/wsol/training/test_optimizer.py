"""Optimizers by name, learning rates by kind of parameter, and the keys of former configs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from wsol.config import Config, Optimizer, Rates
from wsol.config_file import config_from_dict, load_config
from wsol.errors import ConfigError
from wsol.models.localizer import Localizer, build_localizer
from wsol.training.optimizer import make_optimizer

MakeConfig = Callable[..., Config]


def pretrained(tmp_path: Path, config: Config) -> Config:
    """The same with all weights of the backbone from a file, so that they count as pretrained."""
    backbone = build_localizer(config.model, classes=4).backbone
    torch.save(backbone.stages.state_dict(), tmp_path / "tiny.pth")
    return config_from_dict(
        {
            "model": {
                "backbone": "tiny",
                "weights": str(tmp_path / "tiny.pth"),
                "attention": "gpca",
                "head": {"name": "cam", "channels": 8},
            }
        }
    )


def multipliers(localizer: Localizer, config: Config) -> dict[str, float]:
    optimizer = make_optimizer(localizer, config.train)
    names = {p: n for n, p in localizer.named_parameters()}
    found = {names[p]: group["multiplier"] for group in optimizer.param_groups for p in group["params"]}
    assert set(found) == set(names.values())
    return found


def test_each_kind_of_parameter_has_its_rate(make_config: MakeConfig, tmp_path: Path) -> None:
    model = pretrained(tmp_path, make_config()).model
    rates = {"new": 10, "new_bias": 20, "pretrained_bias": 2, "named": {"raw_theta": 30, "stem.1.weight": 0}}
    config = make_config(train__rates=rates)
    found = multipliers(build_localizer(model, classes=4), config)
    assert found["backbone.stages.stem.0.weight"] == 1
    assert found["backbone.stages.stem.1.bias"] == 2
    assert found["backbone.stages.stem.1.weight"] == 0
    assert found["backbone.stages.stage1.0.1.weight"] == 1
    assert found["head.class_maps.0.weight"] == 10
    assert found["head.class_maps.0.bias"] == 20
    assert found["head.attention.raw_theta"] == 30


def test_a_part_of_the_model_has_its_rate(make_config: MakeConfig, tmp_path: Path) -> None:
    model = pretrained(tmp_path, make_config()).model
    config = make_config(train__rates={"new": 2, "named": {"stem.1": 0.5, "stage1": 10, "class_maps": 3}})
    found = multipliers(build_localizer(model, classes=4), config)
    assert found["backbone.stages.stem.0.weight"] == 1
    assert found["backbone.stages.stem.1.bias"] == 0.5
    stage1 = [rate for name, rate in found.items() if name.startswith("backbone.stages.stage1.")]
    assert len(stage1) == 6
    assert set(stage1) == {10}
    assert found["backbone.stages.stage2.0.0.weight"] == 1
    assert found["head.class_maps.0.bias"] == 3
    assert found["head.attention.raw_theta"] == 2


def test_an_unknown_parameter_is_named(make_config: MakeConfig) -> None:
    for wrong, near in {"raw_teta": "raw_theta", "stag2": "stage2"}.items():
        config = make_config(train__rates={"named": {wrong: 3}}, model__attention="gpca")
        with pytest.raises(ConfigError, match=rf"train\.rates\.named: .*'{wrong}'; did you mean '{near}'"):
            make_optimizer(build_localizer(config.model, classes=4), config.train)


def test_adamw_steps_as_its_formula(make_config: MakeConfig) -> None:
    config = make_config(
        train__optimizer={"name": "adamw", "betas": [0.8, 0.95], "eps": 1e-6}, train__weight_decay=0.1
    )
    localizer = build_localizer(config.model, classes=4)
    optimizer = make_optimizer(localizer, config.train)
    parameter = localizer.head.class_maps[0].weight  # type: ignore[index, union-attr]
    first = second = np.zeros(parameter.shape)
    expected = parameter.detach().double().numpy().copy()
    generator = np.random.default_rng(0)
    for step in (1, 2):
        gradient = generator.standard_normal(parameter.shape)
        parameter.grad = torch.from_numpy(gradient).float()
        optimizer.step()
        first = 0.8 * first + 0.2 * gradient
        second = 0.95 * second + 0.05 * gradient**2
        expected -= 0.02 * 0.1 * expected
        expected -= 0.02 * (first / (1 - 0.8**step)) / (np.sqrt(second / (1 - 0.95**step)) + 1e-6)
    np.testing.assert_allclose(parameter.detach().numpy(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ({"optimizer": "sdg"}, "unknown optimizer 'sdg'; did you mean 'sgd'"),
        ({"optimizer": {"name": "sgd", "momentun": 0.1}}, "did you mean 'momentum'"),
        ({"optimizer": {"name": "sgd", "momentum": 1.5}}, "momentum 1.5 is outside 0 to 1"),
        (
            {"optimizer": {"name": "sgd", "momentum": 0, "nesterov": True}},
            "nesterov needs a momentum above 0",
        ),
        ({"optimizer": {"name": "adamw", "betas": [0.9, 2.0]}}, "Invalid beta"),
        ({"optimizer": {"name": "adamw", "lr": 0.1}}, "takes no option 'lr'"),
        ({"rates": {"new": -1}}, r"train\.rates\.new: -1\.0 is outside"),
        ({"rates": {"named": {"theta": -1}}}, "theta: -1.0 is outside"),
        ({"rates": {"head": 1}}, r"unknown key 'train\.rates\.head'"),
        ({"rates": {"new": 2}, "head_lr": 3}, r"train\.head_lr is now train\.rates\.new"),
        ({"head_lr": "fast"}, r"train\.head_lr: expected a number"),
        ({"optimizer": "adamw", "momentum": 0.8}, "'adamw' takes no option 'momentum'"),
    ],
)
def test_refuses(train: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config_from_dict({"train": train})


@pytest.mark.parametrize(
    ("old", "optimizer", "rates"),
    [
        (
            {"momentum": 0.8, "nesterov": True},
            Optimizer.of("sgd", momentum=0.8, nesterov=True),
            Rates(),
        ),
        ({"head_lr": 10, "bias_lr": 2}, Optimizer(), Rates(new=10, new_bias=20)),
        ({"head_lr": 10}, Optimizer(), Rates(new=10, new_bias=10)),
        ({"bias_lr": 2}, Optimizer(), Rates(new=1, new_bias=2)),
        ({"momentum": 0.9, "nesterov": False, "head_lr": 1.0, "bias_lr": 1.0}, Optimizer(), Rates()),
        ({"optimizer": "sgd", "momentum": 0.7}, Optimizer.of("sgd", momentum=0.7), Rates()),
    ],
)
def test_former_keys_keep_their_meaning(old: dict[str, Any], optimizer: Optimizer, rates: Rates) -> None:
    train = config_from_dict({"train": old}).train
    assert train.optimizer == optimizer
    assert train.rates == rates
    assert old == dict(old)


def test_former_keys_in_files_and_overrides(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("train: {head_lr: 10, momentum: 0.5}\n")
    (tmp_path / "top.yaml").write_text("extends: base.yaml\ntrain: {bias_lr: 2}\n")
    train = load_config(tmp_path / "top.yaml", ["train.nesterov=true"]).train
    assert train.rates == Rates(new=10, new_bias=20)
    assert train.optimizer == Optimizer.of("sgd", momentum=0.5, nesterov=True)
    (tmp_path / "bad.yaml").write_text("extends: base.yaml\ntrain:\n  nesterov: perhaps\n")
    with pytest.raises(ConfigError, match=r"bad\.yaml:3: train\.optimizer\.nesterov: expected true or false"):
        load_config(tmp_path / "bad.yaml")
