"""The configs that come with the package: by name, beside files of the user, and as copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsol import shipped_configs
from wsol.cli import main
from wsol.config import Config
from wsol.errors import ConfigError
from wsol.shipped_configs import copy_config, find_config


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_name_is_found_with_what_it_extends(repository: Path) -> None:
    assert find_config("cub/vgg16_adl_gpca") == repository / "configs" / "cub" / "vgg16_adl_gpca.yaml"
    config = Config.read("cub/vgg16_adl_gpca")
    assert config == Config.read(repository / "configs" / "cub" / "vgg16_adl_gpca.yaml")
    assert (config.model.drop.name, config.model.attention.name, config.train.epochs) == ("adl", "gpca", 100)


@pytest.mark.parametrize("own", ["demo", "demo.yaml"])
def test_a_file_of_the_user_wins(own: str) -> None:
    Path(own).write_text("train: {epochs: 3}\n")
    assert find_config("demo") == Path(own)
    assert Config.read("demo").train.epochs == 3


def test_a_folder_of_that_name_does_not() -> None:
    Path("demo").mkdir()  # as `wsol demo` makes it
    assert find_config("demo").name == "demo.yaml"
    Path("other").mkdir()
    with pytest.raises(ConfigError, match="other is a folder, not a config file"):
        find_config("other")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("cub/vgg16_adl_gcpa", "did you mean 'cub/vgg16_adl_gpca'"),
        ("vgg16_adl_gpca", r"did you mean 'cub/vgg16_adl_gpca'\?"),
        ("configs/cub/vgg16_adl_gpca.yaml", r"did you mean 'cub/vgg16_adl_gpca'\?"),
        ("mobilenet_v1_adl.yaml", r"'cub/mobilenet_v1_adl' or 'cub40/mobilenet_v1_adl'\?"),
        ("xyzzy.yaml", r"xyzzy\.yaml: no such config file; 'wsol configs' lists those"),
        ("", "is a folder"),
        ("a\0b", "no such config file"),
    ],
)
def test_a_wrong_name_is_one_line_with_near_ones(wrong: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint) as error:
        find_config(wrong)
    assert "\n" not in str(error.value)


def test_the_command_lists_each_with_its_first_comment(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["configs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    files = sorted((repository / "configs").rglob("*.yaml"))
    assert [line.split()[0] for line in lines] == [
        f.relative_to(repository / "configs").with_suffix("").as_posix() for f in files
    ]
    for line, file in zip(lines, files, strict=True):
        assert line.endswith(file.read_text().splitlines()[0].removeprefix("# ")), file
        assert len(line.split()) > 3, f"{file} has no comment in its first line"


def test_a_copy_trains_the_same_and_replaces_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["configs", "copy", "cub/vgg16_adl_gpca"]) == 0
    assert "next: change configs/cub/vgg16_adl_gpca.yaml, then wsol train" in capsys.readouterr().out
    copies = {p.name for p in Path("configs").rglob("*.yaml")}
    assert copies == {"vgg16_adl_gpca.yaml", "vgg16_adl.yaml", "vgg16_cam.yaml", "base.yaml"}
    copy = Path("configs/cub/vgg16_adl_gpca.yaml")
    assert Config.read(copy) == Config.read("cub/vgg16_adl_gpca")

    copy_config("cub/vgg16_adl")  # equal files are there already
    Path("configs/cub/base.yaml").write_text("train: {epochs: 1}\n")
    assert main(["configs", "copy", "cub/vgg16_cam"]) == 2
    assert "configs/cub/base.yaml is there already and is another file" in capsys.readouterr().err
    assert Config.read(copy).train.epochs == 1
    copy_config("cub/vgg16_cam", overwrite=True)
    assert Config.read(copy).train.epochs == 100

    assert main(["configs", "copy", "cub/vgg61_cam"]) == 2
    assert "did you mean 'cub/vgg16_cam'" in capsys.readouterr().err


def test_an_installed_package_has_them_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "wsol" / "configs" / "a"
    inside.mkdir(parents=True)
    (inside / "b.yaml").write_text("# One line.\ntrain: {epochs: 2}\n")
    monkeypatch.setattr(shipped_configs, "_INSTALLED", tmp_path / "wsol" / "configs")
    assert {name: c.summary for name, c in shipped_configs.shipped_configs().items()} == {"a/b": "One line."}
    assert Config.read("a/b").train.epochs == 2
