"""YAML that remembers the line of each value, for errors that name file and line.

A file is read by the safe loader only (a `!!python` tag is refused), a key given twice is refused, and
`extends: other.yaml` puts the file on top of another one, found beside it. Size, depth and number of values
are limited, so that no file makes the reader run out of memory: a few lines of aliases can stand for billions
of values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from wsol.errors import ConfigError
from wsol.runs.files import read_regular

KeyPath = tuple[str, ...]

LARGEST_FILE = 4_000_000  # bytes
MOST_VALUES = 100_000  # in one file, each alias counted as all that it stands for
DEEPEST = 50  # lists and mappings inside each other

# What PyYAML's constructors raise for a value that its own tag does not fit, such as `!!int ''`.
_UNFIT = (ValueError, IndexError, AttributeError, TypeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Place:
    """Where a value was given: `file:line`, or the words of `--set`. folder: of the file, if it is one."""

    text: str
    folder: Path | None = None

    def __str__(self) -> str:
        return self.text

    @classmethod
    def in_file(cls, path: Path, line: int) -> Place:
        return cls(f"{path}:{line}", path.parent)


UNKNOWN = Place("config")


@dataclass
class Located:
    """Nested plain values (`value`) and the place where each key was given (`places`)."""

    value: dict[str, Any]
    places: dict[KeyPath, Place] = field(default_factory=dict)

    def place(self, path: KeyPath) -> Place:
        """Where the value at `path` was given: its own place, or that of the nearest key above it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, UNKNOWN)

    def override_in(self, path: KeyPath) -> Place | None:
        """The last override of a value in the section `path`, if there is one."""
        given = [p for keys, p in self.places.items() if keys[: len(path)] == path and p.folder is None]
        return given[-1] if given else None


class _Loader(yaml.SafeLoader):
    """The safe loader with a limit on the depth, and a count of the values that were made."""

    depth = 0
    values = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST:
            reason = f"more than {DEEPEST} lists and mappings inside each other"
            raise yaml.MarkedYAMLError(problem=reason, problem_mark=self.peek_event().start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def count(self, node: yaml.Node, path: KeyPath) -> None:
        """Count a value that is made at `path`. An alias inside of what it stands for never ends."""
        self.values += 1
        if len(path) > DEEPEST:
            raise yaml.MarkedYAMLError(problem="an alias that holds itself", problem_mark=node.start_mark)
        if self.values > MOST_VALUES:
            reason = f"more than {MOST_VALUES:,} values (an alias counts as all that it stands for)"
            raise yaml.MarkedYAMLError(problem=reason, problem_mark=node.start_mark)


def read_yaml(path: Path) -> Located:
    """One YAML file as nested plain values with the line of every key; ConfigError where it is not one."""
    try:
        text = read_regular(path, LARGEST_FILE).decode()
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such config file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder, not a config file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return Located({}, {(): Place.in_file(path, 1)})
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError(f"{path}:1: a config is a mapping of keys to values")
        located = Located({}, {(): Place.in_file(path, 1)})
        located.value = _mapping(loader, node, (), path, located.places)
        return located
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        raise ConfigError(f"{path}:{line}: {reason}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None


def parse_override(text: str) -> tuple[KeyPath, Any]:
    """`a.b=c` of the command line as (('a', 'b'), c), c read as YAML."""
    key, equals, value = text.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        raise ConfigError(f"--set {text}: expected a.b=value")
    try:
        loader = _Loader(value)
        node = loader.get_single_node()
        return path, None if node is None else _value(loader, node, (), Path(f"--set {key}"), {})
    except yaml.YAMLError:
        raise ConfigError(f"--set {text}: {value!r} is not a YAML value") from None


def _mapping(
    loader: _Loader, node: yaml.MappingNode, path: KeyPath, file: Path, places: dict[KeyPath, Place]
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = _plain(loader, key_node)
        if not isinstance(key, str):
            raise ConfigError(f"{file}:{line}: the key {key!r} is not a word")
        if key in result:
            raise ConfigError(f"{file}:{line}: the key {key!r} is given twice")
        here = (*path, key)
        places[here] = Place.in_file(file, line)
        result[key] = _value(loader, value_node, here, file, places)
    return result


def _value(loader: _Loader, node: yaml.Node, path: KeyPath, file: Path, places: dict[KeyPath, Place]) -> Any:
    """A value as plain Python; mappings and lists remember the places of what is in them."""
    loader.count(node, path)
    if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
        return _mapping(loader, node, path, file, places)
    if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
        items = []
        for i, item in enumerate(node.value):
            here = (*path, str(i))
            places[here] = Place.in_file(file, item.start_mark.line + 1)
            items.append(_value(loader, item, here, file, places))
        return items
    return _plain(loader, node)


def _plain(loader: _Loader, node: yaml.Node) -> Any:
    """A value as its tag says. A MarkedYAMLError where the value does not fit its tag: `!!int ''`."""
    try:
        return loader.construct_object(node, deep=True)
    except _UNFIT:
        text = f" {node.value[:40]!r}" if isinstance(node.value, str) else ""
        reason = f"the value{text} is not what its tag says ({node.tag.rpartition(':')[2]})"
        raise yaml.MarkedYAMLError(problem=reason, problem_mark=node.start_mark) from None
