"""The configuration: layers, components, round trip."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsol.config import Config, Drop
from wsol.config_file import config_from_dict, config_to_dict, dump_config, load_config
from wsol.errors import ConfigError


def write(folder: Path, text: str, name: str = "config.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_an_empty_file_is_the_default(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, "")) == Config()


def test_component_as_name_and_as_mapping(tmp_path: Path) -> None:
    short = load_config(write(tmp_path, "model: {drop: adl}"))
    long = load_config(write(tmp_path, "model: {drop: {name: adl}}"))
    assert short == long
    assert short.model.drop == Drop("adl")


def test_options_and_shared_fields_of_a_component(tmp_path: Path) -> None:
    config = load_config(
        write(tmp_path, "model: {drop: {name: adl, drop_rate: 0.5, placement: [pool3, pool4]}}")
    )
    assert config.model.drop == Drop.of("adl", drop_rate=0.5, placement=("pool3", "pool4"))


def test_extends_and_set_lie_on_top(tmp_path: Path) -> None:
    write(tmp_path, "train: {epochs: 7, lr: 0.1}\nmodel: {backbone: tiny}", "base.yaml")
    path = write(tmp_path, "extends: base.yaml\ntrain: {lr: 0.2}")
    config = load_config(path, ["train.epochs=3", "data.root=/somewhere"])
    assert (config.train.epochs, config.train.lr) == (3, 0.2)
    assert config.model.backbone.name == "tiny"
    assert config.data.root == Path("/somewhere")


def test_a_component_that_changes_its_name_loses_its_options_but_not_its_shared_fields(
    tmp_path: Path,
) -> None:
    base = "model: {drop: {name: adl, drop_rate: 0.5, gamma: 0.7, placement: original}}"
    write(tmp_path, base, "base.yaml")
    for change in ("model: {drop: dgdm}", "model: {drop: {name: dgdm}}"):
        config = load_config(write(tmp_path, f"extends: base.yaml\n{change}"))
        assert config.model.drop == Drop.of("dgdm", placement="original")
    kept = load_config(write(tmp_path, "extends: base.yaml\nmodel: {drop: {name: adl, gamma: 0.9}}"))
    assert kept.model.drop == Drop.of("adl", drop_rate=0.5, gamma=0.9, placement="original")


def test_the_resolved_config_loads_back_equal(tmp_path: Path) -> None:
    config = load_config(
        write(
            tmp_path,
            """
            data: {name: cub, root: data/x, classes: [1, 6], val_share: 0.1}
            model:
              backbone: tiny
              drop: {name: adl, placement: original}
              head: {name: cam, channels: 64}
              attention: {name: gpca, variant: mha}
            train: {weight_decay: 5e-4, schedule: {name: step, milestones: [3, 5], factor: 0.1}}
            """,
        )
    )
    again = load_config(write(tmp_path, dump_config(config), "again.yaml"))
    assert again == config
    assert config_from_dict(config_to_dict(config)) == config
    assert dump_config(again) == dump_config(config)


def test_a_circle_of_extends_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "extends: b.yaml", "a.yaml")
    write(tmp_path, "extends: a.yaml", "b.yaml")
    with pytest.raises(ConfigError, match="extends itself"):
        load_config(tmp_path / "a.yaml")
