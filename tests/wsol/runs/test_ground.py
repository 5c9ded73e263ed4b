"""The ground knows no room, and naming the files of a run takes no time."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOMS = (
    "data",
    "models",
    "localization",
    "scoring",
    "training",
    "drawing",
    "views",
    "commands",
    "run",
    "api",
)
GROUND = sorted((Path(__file__).parents[3] / "wsol" / "runs").glob("*.py"))


@pytest.mark.parametrize("path", GROUND, ids=lambda path: path.name)
def test_the_ground_imports_no_room(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            parts = name.split(".")
            assert parts[0] != "wsol" or parts[1] not in ROOMS, f"{path.name} imports {name}"


def test_the_names_of_a_run_folder_need_no_torch(repository: Path) -> None:
    code = "import sys, wsol.runs.folder, wsol.runs.history; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=repository).returncode == 0
