"""Modules of a user's own: found beside the config, recorded, and refused in one line where they fail."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wsol import plugins
from wsol.config_file import config_from_dict, load_config
from wsol.errors import ConfigError
from wsol.registry import PROTOCOLS, REGISTRIES

GOOD = """
from wsol.localization.extraction import Extraction
from wsol.scoring.protocols import Protocol, register_protocol
register_protocol(Protocol("loose", "cut at 0.05", Extraction(fixed=0.05)))
"""


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test loads is forgotten when it ends."""
    before = {kind: dict(registry.entries()) for kind, registry in REGISTRIES.items()}
    monkeypatch.setattr(plugins, "_LOADED", {})
    modules = set(sys.modules)
    yield
    for kind, registry in REGISTRIES.items():
        registry.restore(before[kind])
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def write(folder: Path, code: str, module: str = "my_plugin") -> Path:
    (folder / f"{module}.py").write_text(code)
    config = folder / "config.yaml"
    config.write_text(f"plugins: [{module}]\neval: {{protocol: loose}}\n")
    return config


def test_a_module_beside_the_config(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, GOOD))
    assert config.plugins == ("my_plugin",)
    assert PROTOCOLS.create("loose").extraction.fixed == 0.05
    (record,) = plugins.loaded()
    assert (record["module"], record["registered"]) == ("my_plugin", {"protocols": ("loose",)})
    assert Path(record["file"]) == tmp_path / "my_plugin.py"
    assert len(record["sha256"]) == 64
    assert load_config(tmp_path / "config.yaml") == config, "a second config loads no module twice"


def test_a_module_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, GOOD)
    monkeypatch.chdir(tmp_path)
    assert (
        config_from_dict({"plugins": ["my_plugin"], "eval": {"protocol": "loose"}}).eval.protocol == "loose"
    )


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import nothing_of_this_name", "No module named 'nothing_of_this_name'"),
        ("def broken(:", "cannot be imported: SyntaxError"),
        ("1 / 0", r"cannot be imported: ZeroDivisionError: division by zero \(.*my_plugin.py:1\)"),
        (GOOD.replace("loose", "gpca"), "the protocol name 'gpca' is taken"),
        (
            "from wsol.models.heads.head import Head\nfrom wsol.registry import HEADS\n"
            "@HEADS.register('half', 'no loss')\nclass Half(Head):\n    def forward(self, *a): ...\n",
            "head 'half' lacks the method .*loss",
        ),
        (
            "import gpca\n@gpca.register_attention('blind')\n"
            "class Blind(gpca.ChannelAttention):\n    'Blind.'\n",
            "attention 'blind' lacks the method compute_mask",
        ),
        (
            "from wsol.registry import DATASETS\n@DATASETS.register('mine', 'x')\n"
            "class Mine:\n    def detect(root): ...\n",
            "dataset 'mine' lacks the method read",
        ),
    ],
)
def test_a_plugin_that_fails_is_one_line(tmp_path: Path, code: str, reason: str) -> None:
    before = {kind: list(registry.entries()) for kind, registry in REGISTRIES.items()}
    with pytest.raises(ConfigError, match=f"plugin my_plugin: .*{reason}") as caught:
        load_config(write(tmp_path, code))
    assert "\n" not in str(caught.value)
    assert {kind: list(registry.entries()) for kind, registry in REGISTRIES.items()} == before
    assert plugins.loaded() == []


def test_a_module_that_is_nowhere(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("plugins: [of_no_one]\n")
    with pytest.raises(ConfigError, match="No module named 'of_no_one'; put the file beside"):
        load_config(tmp_path / "config.yaml")


def test_a_name_that_python_uses(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"plugin json: the name is taken by the module .*; rename"):
        load_config(write(tmp_path, GOOD, module="json"))
    assert json.dumps([]) == "[]"


def test_a_run_finds_its_plugins_again(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    plugins.load_plugins(["my_plugin"], [tmp_path])
    run = tmp_path / "run"
    run.mkdir()
    (run / "plugins.json").write_text(json.dumps({"plugins": plugins.loaded()}))
    plugins._LOADED.clear()
    PROTOCOLS.restore({k: v for k, v in PROTOCOLS.entries().items() if k != "loose"})
    sys.modules.pop("my_plugin")
    plugins.load_recorded(run / "plugins.json", run)
    assert "loose" in PROTOCOLS.entries()


def test_a_changed_plugin_is_said(tmp_path: Path) -> None:
    file = tmp_path / "my_plugin.py"
    file.write_text(GOOD)
    record = [{"module": "my_plugin", "file": str(file), "sha256": "0" * 64, "registered": {}}]
    (tmp_path / "plugins.json").write_text(json.dumps({"plugins": record}))
    with pytest.warns(UserWarning, match="my_plugin.py has changed since the run was trained"):
        plugins.load_recorded(tmp_path / "plugins.json", tmp_path / "run")


def test_code_in_a_run_folder_is_never_run(tmp_path: Path) -> None:
    """A run folder may come from someone else."""
    file = tmp_path / "evil.py"
    file.write_text("raise SystemExit('it ran')")
    record = [{"module": "evil", "file": str(file), "sha256": "0" * 64, "registered": {}}]
    (tmp_path / "plugins.json").write_text(json.dumps({"plugins": record}))
    with pytest.raises(ConfigError, match=r"evil\.py lies in the run folder; code in a run"):
        plugins.load_recorded(tmp_path / "plugins.json", tmp_path)


def test_code_in_a_run_folder_is_not_run_for_its_config_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A config that names a module which the run's record leaves out."""
    monkeypatch.chdir(Path(__file__).parent)
    config = write(tmp_path, "raise SystemExit('it ran')")
    with pytest.raises(ConfigError, match="No module named 'my_plugin'"):
        load_config(config, of_run=True)


def test_an_installed_package_announces_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the entry point group `wsol.plugins`, with nothing in the config."""
    (tmp_path / "installed_plugin.py").write_text(GOOD)
    info = tmp_path / "installed_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[wsol.plugins]\nmine = installed_plugin\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert config_from_dict({"eval": {"protocol": "loose"}}).eval.protocol == "loose"
    assert [record["module"] for record in plugins.loaded()] == ["installed_plugin"]
