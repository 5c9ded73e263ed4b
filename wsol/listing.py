"""Everything that a config can name, found by reading the source: `wsol list` needs no torch.

The registries hold the same, but filling them imports every network. Here the decorators
`@REGISTRY.register("name", "summary")` and `@register_attention("name")` are found in the syntax trees of the
modules that a registry calls its homes, with the options of what they decorate. A test compares the two.
Protocols and metrics are records, not classes: their modules are quick to import, so their registries are
asked. Where plugins are installed, all registries are asked, since their names are known only after an
import.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from wsol.plugins import GROUP, load_installed
from wsol.registry import REGISTRIES, Registry

RECORDS = ("protocols", "metrics")  # kinds whose modules are quick to import


@dataclass(frozen=True)
class ListedComponent:
    """A component: its name, one line about it, and its options as `name=default`."""

    name: str
    summary: str
    options: tuple[str, ...]


def list_components(kind: str) -> list[ListedComponent]:
    """Every component of a kind (`heads`, `protocols`, ...), in the order of its registry."""
    registry = REGISTRIES[kind]
    if kind in RECORDS or entry_points(group=GROUP):
        load_installed()
        return list(_asked(registry))
    return [
        found
        for home in registry.homes
        for path in _files(home)
        for found in _read(path, kind.upper(), registry)
    ]


def _asked(registry: Registry) -> Iterator[ListedComponent]:
    for name, entry in registry.entries().items():
        options = registry.options(name + "NAME" if name.endswith(":") else name).values()
        shown = (o.name if o.required else f"{o.name}={_short(o.default)}" for o in options)
        yield ListedComponent(name, entry.summary, tuple(shown))


def _files(home: str) -> list[Path]:
    """The source files of a module, or of a package and everything directly in it."""
    spec = importlib.util.find_spec(home)
    assert spec is not None
    assert spec.origin is not None, home
    origin = Path(spec.origin)
    return sorted(origin.parent.glob("*.py")) if origin.name == "__init__.py" else [origin]


def _read(path: Path, variable: str, registry: Registry) -> Iterator[ListedComponent]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            for decorator in node.decorator_list:
                found = _registration(decorator, node, variable)
                if found is not None:
                    options = tuple(_options(_signature(node, classes), registry.supplied))
                    # A family such as `timm:` takes the rest of the name as its first argument.
                    yield ListedComponent(*found, options[1:] if found[0].endswith(":") else options)


def _registration(
    decorator: ast.expr, node: ast.ClassDef | ast.FunctionDef, variable: str
) -> tuple[str, str] | None:
    """(name, summary) where the decorator registers `node` in the registry of this name."""
    if not isinstance(decorator, ast.Call):
        return None
    words = [a.value for a in decorator.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    called = ast.unparse(decorator.func)
    if called == f"{variable}.register" and len(words) == 2:
        return words[0], words[1]
    if called == "register_attention" and variable == "ATTENTIONS" and words:
        return words[0], (ast.get_docstring(node) or "").split("\n", 1)[0]
    return None


def _signature(
    node: ast.ClassDef | ast.FunctionDef, classes: dict[str, ast.ClassDef]
) -> ast.arguments | None:
    """The parameters of a function, or of the constructor of a class or of its base in the same file."""
    if isinstance(node, ast.FunctionDef):
        return node.args
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return item.args
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            return _signature(classes[base.id], classes)
    return None


def _options(arguments: ast.arguments | None, supplied: frozenset[str]) -> Iterator[str]:
    if arguments is None:
        return
    plain = [*arguments.posonlyargs, *arguments.args]
    without = len(plain) - len(arguments.defaults)
    defaults = [None] * without + list(arguments.defaults)
    for argument, default in (
        *zip(plain, defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ):
        if argument.arg not in ("self", *supplied):
            yield argument.arg if default is None else f"{argument.arg}={_constant(default)}"


def _constant(node: ast.expr) -> str:
    try:
        return _short(ast.literal_eval(node))
    except ValueError:
        return ast.unparse(node)


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
