"""What needs an extra that is not installed says in one line how to get it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from wsol import machine
from wsol.errors import WsolError
from wsol.models.export import require_onnx_packages
from wsol.run import Run


@pytest.fixture
def without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no package of an extra were installed."""
    missing = {*machine.EXTRAS, "onnx", "onnxscript"}
    find, version = importlib.util.find_spec, importlib.metadata.version

    def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name.partition(".")[0] in missing else find(name, package)

    def find_version(name: str) -> str:
        if name in missing:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    monkeypatch.setattr(importlib.metadata, "version", find_version)


@pytest.mark.usefixtures("without_extras")
def test_the_hub() -> None:
    with pytest.raises(WsolError, match=r"^the hub needs .*: pip install 'wsol\[hub\]'$"):
        Run("hf://owner/birds")


@pytest.mark.usefixtures("without_extras")
def test_onnx() -> None:
    with pytest.raises(WsolError, match=r"^ONNX needs .*: pip install 'wsol\[onnx\]'$"):
        require_onnx_packages()


@pytest.mark.usefixtures("without_extras")
def test_the_doctor_lists_all_of_them(tmp_path: Path) -> None:
    said = {what: value for what, value, _ in machine.inspect_machine(tmp_path)}
    for package, (_, extra) in machine.EXTRAS.items():
        assert said[f"{package} (extra)"].endswith(f"pip install 'wsol[{extra}]')")
