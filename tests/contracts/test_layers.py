"""Data flows one way: each room imports only the rooms before it, and each decision has one home."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

# Every part of the package, in the order of the flow. A part may import those of earlier lines, and itself.
GROUND = {
    "errors",
    "version",
    "cores",
    "freed_memory",
    "notices",
    "printable",
    "registry",
    "records",
    "class_names",
    "text_table",
    "config",
    "config_types",
    "config_file",
    "config_moved",
    "shipped_configs",
    "yamlfile",
    "plugins",
    "method_names",
    "machine",
    "listing",
    "runs",
    "drawing",
}
ORDER = (
    GROUND,
    {"data"},
    {"models"},
    {"localization"},
    {"scoring"},
    {"run"},
    {"training", "views"},
    {"serving"},
    {"api"},
    {"commands", "cli", "__main__"},
)
BESIDE = ("training", "views")  # neither knows the other


def parts(repository: Path) -> Iterator[tuple[str, Path]]:
    """(part of the package, file)."""
    for path in sorted((repository / "wsol").rglob("*.py")):
        first = path.relative_to(repository / "wsol").parts[0].removesuffix(".py")
        if first != "__init__":
            yield first, path


def imported_modules(path: Path) -> set[str]:
    """Dotted names that a file imports, at any depth; imports for type checkers alone do not count."""
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
            module = node.module or ""
            names |= {module} if module != "wsol" else {f"wsol.{alias.name}" for alias in node.names}
    return names


def texts(path: Path) -> Iterator[tuple[str, int]]:
    """(text, line) of every string in a file that is not a docstring."""
    tree = ast.parse(path.read_text())
    docstrings = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.value, node.lineno


def test_every_part_has_its_place(repository: Path) -> None:
    assert {part for part, _ in parts(repository)} == set().union(*ORDER)


def test_nothing_imports_what_comes_after_it(repository: Path) -> None:
    place = {part: i for i, group in enumerate(ORDER) for part in group}
    wrong = []
    for part, path in parts(repository):
        for name in imported_modules(path):
            package, _, rest = name.partition(".")
            other = rest.partition(".")[0]
            if package == "wsol" and other:
                later = place[other] > place[part]
                if later or (other in BESIDE and part in BESIDE and other != part):
                    wrong.append(f"{path.relative_to(repository)} imports {name}")
    # `wsol demo` runs the other commands as a user would, through the command line itself.
    assert wrong == []


def test_gpca_imports_torch_and_itself(repository: Path) -> None:
    for path in (repository / "gpca").glob("*.py"):
        for name in imported_modules(path):
            assert name.split(".")[0] != "wsol", f"{path.name} imports {name}"


def test_albumentations_has_one_home(repository: Path) -> None:
    homes = {
        path.name
        for _, path in parts(repository)
        if any(name.split(".")[0] == "albumentations" for name in imported_modules(path))
    }
    assert homes == {"augment.py"}


def test_commands_only_parse_call_and_print(repository: Path) -> None:
    for path in (repository / "wsol" / "commands").glob("*.py"):
        assert len(path.read_text().splitlines()) < 80, path.name


def test_the_names_of_a_run_folder_occur_in_one_package(repository: Path) -> None:
    from wsol.runs.folder import RunFolder

    folder = RunFolder(Path("run"))
    files = {value.name for value in vars(folder).values() if isinstance(value, Path)} - {"run"}
    assert {"config.yaml", "scores.json", "predictions", "report.html", "plugins.json"} <= files
    files |= {"last.ckpt", "best.ckpt", "previous.ckpt", "checkpoints"}
    named = {name for name in files if "." in name}  # a plain word such as "predictions" has other uses
    found = [
        f"{path.relative_to(repository)}:{line}: {text!r}"
        for part, path in parts(repository)
        if part != "runs"
        for text, line in texts(path)
        if text in named
    ]
    assert found == []


@pytest.mark.parametrize("word", ["strict_top", "strict_known"])
def test_the_judge_alone_applies_the_hit_rule(repository: Path, word: str) -> None:
    homes = {p.name for _, p in parts(repository) if word in p.read_text()}
    assert homes == {"judge.py", "protocols.py"}


def test_no_two_records_share_a_name(repository: Path) -> None:
    """One word for one thing: no class name is used twice in the package."""
    homes: dict[str, list[str]] = {}
    for _, path in parts(repository):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(repository)))
    # A config's section is called after what it configures.
    twice = {name: where for name, where in homes.items() if len(where) > 1 and "wsol/config.py" not in where}
    assert twice == {}
