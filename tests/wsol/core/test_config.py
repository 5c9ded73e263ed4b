"""The configuration: layers, components, round trip."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gpca
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


def test_the_reading_is_recorded_so_that_its_default_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "model: {attention: gpca, taps: [{name: gpca, after: stage3, reading: auto}]}")
    config = load_config(path)
    assert config.model.attention.options == {"reading": "literal"}
    assert "reading: literal" in dump_config(config)
    # The config of a run from before the option existed means what it meant then, whatever is usual now.
    former = write(tmp_path, "model: {backbone: tiny, attention: {name: gpca}}", "former.yaml")
    monkeypatch.setattr(gpca.GPCA.__init__, "__defaults__", _with_default(gpca.GPCA, reading="unit"))
    assert load_config(former).model.attention.options == {"reading": "unit"}
    assert load_config(former, of_run=True).model.attention.options == {"reading": "literal"}
    assert load_config(path, of_run=True).model.taps[0].options == {"reading": "auto"}


def _with_default(component: type, **changes: object) -> tuple[object, ...]:
    """The defaults of a constructor with some of them changed."""
    parameters = inspect.signature(component).parameters.values()
    return tuple(changes.get(p.name, p.default) for p in parameters if p.default is not p.empty)


def test_a_circle_of_extends_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "extends: b.yaml", "a.yaml")
    write(tmp_path, "extends: a.yaml", "b.yaml")
    with pytest.raises(ConfigError, match="extends itself"):
        load_config(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("override", "blamed"),
    [
        ("data.image_size=300", "--set data.image_size=300: data.resize: 256 is smaller than image_size 300"),
        ("train.accumulate=5", "--set train.accumulate=5: train.accumulate: a batch of 32 does not split"),
        (
            "train.batch_size=7",
            "--set train.batch_size=7: train.accumulate: a batch of 7 does not",
        ),
        ("model.drop.gama=1", "--set model.drop.gama=1: model.drop.gama: drop 'adl' takes no option 'gama'"),
        ("train=3", "--set train=3: train: expected a mapping, got 3"),
    ],
)
def test_an_override_is_blamed_for_what_it_said(tmp_path: Path, override: str, blamed: str) -> None:
    """Also where the other one of two values that do not fit stands in the file."""
    file = tmp_path / "c.yaml"
    file.write_text("data: {resize: 256}\nmodel: {drop: adl}\ntrain:\n  accumulate: 2\n")
    with pytest.raises(ConfigError, match=f"^{re.escape(blamed)}"):
        load_config(file, [override])


def test_the_file_is_blamed_for_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("data:\n  resize: 100\n")
    with pytest.raises(ConfigError, match=r"c\.yaml:2: data\.resize: 100 is smaller"):
        load_config(file, ["train.epochs=3"])


def test_a_file_of_annotations_lies_beside_the_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the command is started; one that is only in the current folder is found there."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "boxes.csv").write_text("image\n")
    file = tmp_path / "mine" / "c.yaml"
    file.write_text("data: {name: folder, root: photos, annotations: boxes.csv}\n")
    monkeypatch.chdir(tmp_path)
    config = load_config(file)
    assert config.data.options["annotations"] == tmp_path / "mine" / "boxes.csv"
    assert config.data.root == Path("photos"), "a data set is looked for from the current folder"
    file.write_text("data: {name: folder, root: photos, annotations: elsewhere.csv}\n")
    assert load_config(file).data.options["annotations"] == Path("elsewhere.csv")


def test_values_that_are_set_are_taken_as_they_are(tmp_path: Path) -> None:
    """Not read as YAML: a folder may be called anything."""
    for name in ("birds #3", "123", "a: b", "null", "[x]"):
        assert config_from_dict({}, {"data.root": tmp_path / name}).data.root == tmp_path / name
        assert config_from_dict({}, {"data.root": name}).data.root == Path(name)
    with pytest.raises(ConfigError, match=r"train\.epochs='many': train\.epochs: expected a whole number"):
        config_from_dict({}, {"train.epochs": "many"})


def test_reading_a_config_imports_neither_timm_nor_torchvision() -> None:
    """They take seconds, and `report` and `compare` read configs without building a network."""
    script = (
        "import sys; from wsol.config import Config; Config.read({'model': {'backbone': 'vgg16'}}); "
        "print([name for name in ('timm', 'torchvision', 'albumentations') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model.attention=sre", "unknown attention 'sre'"),
        ("model.attention={name: gpca, reading: units}", "did you mean 'unit'"),
        ("model.attention={name: gpca, theta: median}", "a list of a number or 'auto'"),
    ],
)
def test_an_override_of_a_whole_section_is_blamed_itself(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("model:\n  attention:\n    name: gpca\n    reading: unit\n")
    with pytest.raises(ConfigError) as caught:
        load_config(file, [text])
    assert str(caught.value).startswith("--set model.attention=")
    assert said in str(caught.value)
