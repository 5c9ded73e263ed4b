"""gpca stands alone: torch is all that it needs to be imported."""

import ast
import subprocess
import sys
from pathlib import Path

import gpca

PACKAGE = Path(gpca.__file__).parent


def test_source_imports_torch_and_the_standard_library_only() -> None:
    allowed = {"torch", "gpca"} | set(sys.stdlib_module_names)
    for file in PACKAGE.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in tree.body:
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert {name.split(".")[0] for name in names} <= allowed, file.name


def test_import_brings_in_no_other_library() -> None:
    program = (
        "import sys, torch; before = set(sys.modules); import gpca, gpca.beta; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    assert set(ast.literal_eval(result.stdout)) <= {"gpca", "torch"}


def test_public_names_exist_and_have_docstrings() -> None:
    for name in gpca.__all__:
        assert getattr(gpca, name).__doc__
    assert (PACKAGE / "py.typed").is_file()
