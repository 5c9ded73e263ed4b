"""The command line: help worth reading, one-line errors, exit codes."""

from __future__ import annotations

import os
import pkgutil
import re
import subprocess
import sys
from importlib.metadata import version

import pytest

from wsol import commands
from wsol.cli import build_parser, main
from wsol.commands import COMMANDS
from wsol.commands.data import VERBS
from wsol.version import __version__


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"wsol {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"\n  wsol {command}" in text or command == "doctor", "an example to copy"
    assert "--debug" in text
    assert "usage: " in text


def test_help_is_quick_because_no_command_imports_torch() -> None:
    code = "import sys; from wsol.cli import build_parser; build_parser(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_threads_wait_passively_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, found in ((None, "passive"), ("active", "active")):
        monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
        if given:
            monkeypatch.setenv("OMP_WAIT_POLICY", given)
        assert main([]) == 0
        assert os.environ["OMP_WAIT_POLICY"] == found


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="asks GNU's OpenMP, which torch uses on Linux")
@pytest.mark.parametrize(("given", "spins"), [({}, "0"), ({"GOMP_SPINCOUNT": "77"}, "77")])
def test_torch_gets_to_know_how_to_wait(given: dict[str, str], spins: str) -> None:
    clean = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    command = [sys.executable, "-m", "wsol", "doctor"]
    told = {**clean, **given, "OMP_DISPLAY_ENV": "verbose"}
    printed = subprocess.run(command, env=told, capture_output=True, text=True, check=False).stderr
    assert f"GOMP_SPINCOUNT = '{spins}'" in printed


def test_unknown_command_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["trian"])
    assert stop.value.code == 2


def test_list_names_everything_with_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for word in (
        *("vgg16", "mobilenet_v1", "resnet50", "timm:", "tiny"),
        *("adl", "dgdm", "cam", "danet", "gpca", "srp", "constant"),
        *("cub", "folder", "synthetic", "wsoleval-v2", "options: "),
    ):
        assert word in text


def test_list_of_an_unknown_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "atention"]) == 2
    assert "did you mean 'attentions'" in capsys.readouterr().err


def test_doctor_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor"])
    printed = capsys.readouterr().out
    assert code == (1 if "->" in printed else 0), "the exit code says whether something is to be mended"
    assert re.search(rf"^  torch +{re.escape(version('torch'))}$", printed, re.MULTILINE)
    assert "free disk" in printed


def test_debug_shows_the_traceback() -> None:
    from wsol.errors import ConfigError

    with pytest.raises(ConfigError):
        main(["list", "nothing", "--debug"])


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    command = f"{sys.executable} -m wsol list | head -1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in result.stderr


def test_every_module_of_the_commands_is_listed_once() -> None:
    helpers = {
        "classifier_arguments",
        "config_arguments",
        "demo_steps",
        "evaluation_text",
        "measured_run",
        "next_commands",
        "subcommands",
    }
    modules = {m.name for m in pkgutil.iter_modules(commands.__path__)} - helpers
    verbs = {"configs_copy", *(f"data_{verb}" for verb in VERBS)}
    assert modules == {*COMMANDS, *verbs}
    assert len(set(COMMANDS)) == len(COMMANDS)
    for command in COMMANDS:
        assert command in build_parser().format_help()


def test_wsol_alone_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "wsol demo" in capsys.readouterr().out
    assert main(["data"]) == 2
    assert "wsol data synth OUT" in capsys.readouterr().out
