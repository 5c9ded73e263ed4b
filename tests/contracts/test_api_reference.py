"""docs/api.md is what scripts/api_reference.py makes of the docstrings, and names every public thing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import wsol


def test_the_reference_is_current(repository: Path) -> None:
    script = repository / "scripts" / "api_reference.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_reference_has_every_public_name(repository: Path) -> None:
    text = (repository / "docs" / "api.md").read_text()
    missing = [n for n in wsol.__all__ if n != "__version__" and f"### wsol.{n}\n" not in text]
    assert missing == []
    assert "`<" in text  # a file name in angle brackets is code, or Markdown would hide it
