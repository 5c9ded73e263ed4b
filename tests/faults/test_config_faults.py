"""A config with a fault is refused with file, line and the nearest name, before data is touched."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsol.config import Config
from wsol.config_file import load_config
from wsol.errors import ConfigError

FAULTS = {
    "unknown section": ("modle: {}", r":1: unknown key 'modle'; did you mean 'model'"),
    "unknown key": ("train:\n  epoch: 3", r":2: unknown key 'train\.epoch'; did you mean 'epochs'"),
    "wrong type": ("train:\n  lr: fast", r":2: train\.lr: expected a number, got 'fast'"),
    "bool for int": ("train: {epochs: true}", r":1: train\.epochs: expected a whole number"),
    "section is no mapping": ("train: 3", r":1: train: expected a mapping, got 3"),
    "unknown component": (
        "model:\n  drop: adll",
        r":2: model\.drop: unknown drop 'adll'; did you mean 'adl'",
    ),
    "unknown backbone": ("model: {backbone: vgg19}", r"unknown backbone 'vgg19'; did you mean 'vgg16'"),
    "unknown option": (
        "model:\n  attention:\n    name: gpca\n    varient: full",
        r":4: model\.attention\.varient: attention 'gpca' takes no option 'varient'; did you mean 'variant'",
    ),
    "option of another component": (
        "model: {attention: {name: se, variant: full}}",
        "takes no option 'variant'",
    ),
    "wrong type of an option": (
        "model: {drop: {name: adl, drop_rate: [1]}}",
        r"model\.drop\.drop_rate: expected a number",
    ),
    "out of range": ("train: {epochs: 0}", r":1: train\.epochs: 0 is outside 1 to"),
    "no crop fits": ("data: {resize: 100, image_size: 224}", "resize: 100 is smaller than image_size 224"),
    "unknown protocol": ("eval: {protocol: gpka}", "unknown protocol 'gpka'; did you mean 'gpca'"),
    "python tag": (
        "train: !!python/object/apply:os.system ['echo bad']",
        r":1: could not determine a constructor",
    ),
    "key given twice": ("train: {lr: 1}\ntrain: {lr: 2}", r":2: the key 'train' is given twice"),
    "not a mapping": ("- a\n- b", "a config is a mapping"),
    "broken yaml": ("train: {lr: 1", r":\d+: "),
    "tab": ("train:\n\tlr: 1", r":2: "),
    "two documents": ("train: {}\n---\ntrain: {}", "single document"),
    "alias": ("train: *x", "undefined alias"),
    "number as key": ("3: {}", r":1: the key 3 is not a word"),
    "aliases that multiply": (
        "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(f"{new}: &{new} [{', '.join(8 * [f'*{old}'])}]\n" for old, new in pairwise("abcdefghij")),
        r":\d+: more than 100,000 values \(an alias counts as all that it stands for\)",
    ),
    "an alias in itself": ("a: &a {b: *a}", r":1: an alias that holds itself"),
    "lists in lists": ("a: " + 5000 * "[" + 5000 * "]", r":1: more than 50 lists and mappings"),
    "a tag that does not fit": ("train:\n  epochs: !!int ''", r":2: the value '' is not what its tag says"),
    "no such day": ("train:\n  lr: 2020-13-45", r":2: the value '2020-13-45' is not what its tag says"),
    "too many digits": (f"train:\n  lr: {400 * '9'}", r":2: train\.lr: a whole number that is too large"),
    "far too many digits": (f"train:\n  epochs: {9999 * '9'}", r":2: the value '9999.*\(int\)"),
    "extends a number": ("extends: 3", r":1: extends: expected a file name"),
    "extends nothing": ("extends: nowhere.yaml", r"nowhere\.yaml: no such config file"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_refused_with_place_and_hint(tmp_path: Path, fault: str) -> None:
    text, message = FAULTS[fault]
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    "value",
    ["!!int ''", "!!float ''", "!!timestamp x", "2020-13-45", 9999 * "9", 400 * "9", 3000 * "[", "&a [*a]"],
)
def test_a_strange_value_of_set_is_one_line(tmp_path: Path, value: str) -> None:
    (tmp_path / "config.yaml").write_text("train: {lr: 0.1}")
    with pytest.raises(ConfigError, match=r"^--set train\.lr="):
        load_config(tmp_path / "config.yaml", [f"train.lr={value}"])


def test_a_config_that_never_ends_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    (tmp_path / "huge.yaml").touch()
    os.truncate(tmp_path / "huge.yaml", 10**12)  # takes no space on the disk
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "extends.yaml").write_text("extends: pipe.yaml")
    for name, reason in (
        ("pipe.yaml", "not a regular file"),
        ("zero.yaml", "not a regular file"),
        ("huge.yaml", "1,000,000,000,000 bytes, and at most 4,000,000 are read"),
        ("loop.yaml", "Too many levels of symbolic links"),
        ("extends.yaml", r"pipe\.yaml: cannot be read: not a regular file"),
    ):
        with pytest.raises(ConfigError, match=reason):
            load_config(tmp_path / name)


def test_override_is_named_as_the_place(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("train: {lr: 0.1}")
    with pytest.raises(ConfigError, match=r"--set train\.lrr=1: unknown key 'train\.lrr'; did you mean 'lr'"):
        load_config(path, ["train.lrr=1"])
    for text in ("train.lr", "=1", "a..b=1"):
        with pytest.raises(ConfigError, match=r"expected a\.b=value"):
            load_config(path, [text])


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such config file"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="is a folder"):
        load_config(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(tmp_path / "binary.yaml")


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_is_a_config_or_a_config_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_text(text, encoding="utf-8")
    with contextlib.suppress(ConfigError):
        assert isinstance(load_config(path), Config)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["data", "model", "train", "eval", "name", "lr", "drop", "root", "schedule"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_structure_is_a_config_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    import yaml

    path = tmp_path_factory.getbasetemp() / "structure.yaml"
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    with contextlib.suppress(ConfigError):
        assert isinstance(load_config(path), Config)


def test_the_command_ends_with_one_line_and_exit_code_2(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("train:\n  epoch: 3\n")
    result = subprocess.run(
        [sys.executable, "-m", "wsol", "train", str(path)], capture_output=True, text=True, cwd=tmp_path
    )
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert f"{path}:2: unknown key 'train.epoch'" in result.stderr
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "schedule",
    [
        "{name: step, factor: .nan}",
        "{name: step, factor: -0.1}",
        "{name: step, milestones: [-3]}",
        "{name: cosine, final: 5}",
    ],
)
def test_a_schedule_out_of_range(tmp_path: Path, schedule: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(f"train:\n  schedule: {schedule}\n")
    with pytest.raises(ConfigError, match=r"c\.yaml:2.*train\.schedule.*(at least 0|in 0 to 1)"):
        load_config(path)


def test_a_section_that_is_no_mapping_is_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("train: {epochs: 7}\n")
    with pytest.raises(ConfigError, match=r"--set train=3: train: expected a mapping, got 3"):
        load_config(path, ["train=3", "train.lr=0.1"])
