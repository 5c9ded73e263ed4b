"""Data flows one way: each room imports only the rooms before it, and gpca imports none of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOMS = ("data", "models", "localize", "scoring", "training", "views")
# What every room may use: it knows no room itself.
GROUND = (
    "errors",
    "registry",
    "records",
    "config",
    "config_file",
    "convert",
    "yamlfile",
    "version",
    "cores",
)


def imported_modules(path: Path) -> set[str]:
    """Dotted names that a file imports when it runs; imports for type checkers alone do not count."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_knows_only_the_rooms_before_it(repository: Path, room: str) -> None:
    allowed = {*GROUND, *ROOMS[: ROOMS.index(room) + 1]}
    for path in (repository / "wsol" / room).rglob("*.py"):
        for name in imported_modules(path):
            parts = name.split(".")
            if parts[0] == "wsol" and len(parts) > 1:
                assert parts[1] in allowed, f"{path.relative_to(repository)} imports {name}"


@pytest.mark.parametrize("module", GROUND)
def test_the_ground_knows_no_room(repository: Path, module: str) -> None:
    for name in imported_modules(repository / "wsol" / f"{module}.py"):
        parts = name.split(".")
        assert parts[0] != "wsol" or parts[1] in GROUND, f"{module} imports {name}"


def test_gpca_imports_torch_and_itself(repository: Path) -> None:
    for path in (repository / "gpca").glob("*.py"):
        for name in imported_modules(path):
            assert name.split(".")[0] != "wsol", f"{path.name} imports {name}"


def test_albumentations_has_one_home(repository: Path) -> None:
    homes = {
        path.name
        for path in (repository / "wsol").rglob("*.py")
        if any(name.split(".")[0] == "albumentations" for name in imported_modules(path))
    }
    assert homes == {"augment.py"}
