"""The notebooks of examples/ run from the first cell to the last, and are committed without outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import notebook

NOTEBOOKS = ("own_photos.ipynb", "quickstart.ipynb")


def run_notebook(path: Path, folder: Path, repository: Path) -> list[dict[str, Any]]:
    """What each code cell showed, in a process of its own; what cells print is left out."""
    settings = {"PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1"}
    # No network and no weights on the disk, so that it does the same on every machine and downloads nothing.
    settings |= {"https_proxy": "http://127.0.0.1:9", "HF_HOME": str(folder / "empty")}
    done = subprocess.run(
        [sys.executable, notebook.__file__, str(path)],
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_all_notebooks_are_tested(repository: Path) -> None:
    assert tuple(sorted(path.name for path in (repository / "examples").glob("*.ipynb"))) == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_has_no_outputs(repository: Path, name: str) -> None:
    cells = json.loads((repository / "examples" / name).read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)


@pytest.mark.long
def test_quickstart(repository: Path, tmp_path: Path) -> None:
    shown = run_notebook(repository / "examples" / "quickstart.ipynb", tmp_path, repository)
    assert len(shown) == 5
    assert "wsoleval-v2" in shown[2]["html"]
    assert shown[3]["png"] > 1000
    assert shown[4]["png"] > 1000


@pytest.mark.long
def test_own_photos(repository: Path, tmp_path: Path) -> None:
    shown = run_notebook(repository / "examples" / "own_photos.ipynb", tmp_path, repository)
    assert len(shown) == 7
    assert shown[0]["text"].count(".jpg") == 10
    assert "GT-known" in shown[4]["html"]
    assert shown[5]["html"].count(".jpg") == 2
    assert shown[6]["png"] > 1000
    assert (tmp_path / "found" / "boxes.csv").is_file()
