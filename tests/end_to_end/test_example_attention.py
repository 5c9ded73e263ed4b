"""examples/attention_in_any_network.py runs and says what it promises."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("name", "kept"), [("gpca", "mask (4, 512)"), ("gcnet", "map (4, 2, 2)")])
def test_the_example(
    repository: Path,
    name: str,
    kept: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["example", name])
    runpy.run_path(str(repository / "examples" / "attention_in_any_network.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "Insertion: 4 " in said
    assert "keys are missing, all of attentions; 0 are unexpected" in said
    assert f"layer4.0.bn2.attention: {kept}" in said
    assert "keys as before: True" in said
