"""Extensions from outside the package: modules that register heads, data sets, protocols and the like.

A config names them (`plugins: [my_heads]`); a module is searched beside the config file, then in the
current folder, then among the installed ones. An installed package can announce itself instead, by the entry
point group `wsol.plugins`. What a plugin registered is recorded in the run, with the file and its digest, so
that `wsol evaluate RUN` finds it again.

A plugin is code that runs: name only modules that you trust. No module is ever loaded from inside a run
folder, which may come from someone else.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import json
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from wsol.errors import ConfigError, RunFolderError
from wsol.notices import note
from wsol.registry import REGISTRIES
from wsol.runs.files import read_regular, real_path

GROUP = "wsol.plugins"


@dataclass(frozen=True)
class Plugin:
    """A module that was loaded: its file, the digest of that file, and what it registered by kind."""

    module: str
    file: str
    sha256: str
    registered: Mapping[str, tuple[str, ...]]


_LOADED: dict[str, Plugin] = {}


def loaded() -> list[dict[str, Any]]:
    """Every plugin of this process, as plain values for a run's record."""
    return [asdict(plugin) for plugin in _LOADED.values()]


def load_plugins(modules: Iterable[str], folders: Sequence[Path] = ()) -> None:
    """Import the modules, each once, from the first of the folders that has it or from what is installed.

    Raises ConfigError, in one line with the module and the reason, where one cannot be imported, registers a
    name that is taken or lacks a method.
    """
    for name in modules:
        if name not in _LOADED:
            _LOADED[name] = _load(name, _find(name, (*folders, Path.cwd())))


def load_installed() -> None:
    """Import the plugins of installed packages, once in a process."""
    for entry in entry_points(group=GROUP):
        if entry.value not in _LOADED:
            _LOADED[entry.value] = _load(entry.value, None)


def load_recorded(path: Path, run_dir: Path) -> None:
    """Import the plugins that a run recorded in `path`; an older run has no such file."""
    for plugin_record in _read_recorded(path):
        name, file, digest = plugin_record.module, Path(plugin_record.file), plugin_record.sha256
        if name in _LOADED:
            continue
        if real_path(file).is_relative_to(real_path(run_dir)):
            raise ConfigError(
                f"plugin {name}: {file} lies in the run folder; code in a run folder is never run"
            )
        if file.is_file():
            found: Path | None = file
        else:
            found = _find(name, (Path.cwd(),))
        plugin = _LOADED[name] = _load(name, found)
        if plugin.sha256 != digest:
            note(f"plugin {name}: {plugin.file} has changed since the run was trained")


def require_recorded(path: Path, pack: Path) -> None:
    """Raise where a plugin that a pack recorded in `path` is not here. Nothing is imported for a pack.

    It is here when everything that it registered is: the user imported it, named it with `wsol --plugin`, or
    has a package installed that announces it.
    """
    load_installed()
    for plugin in _read_recorded(path):
        lacks = [
            f"{kind} {name!r}"
            for kind, names in plugin.registered.items()
            for name in names
            if kind not in REGISTRIES or name not in REGISTRIES[kind].entries()
        ]
        if lacks:
            raise ConfigError(
                f"{pack}: needs the plugin {plugin.module} ({', '.join(lacks)}), Python code that is no part "
                "of a pack; get it from who made the pack, and if you trust it: "
                f"`wsol --plugin {plugin.module} ...`, or `import {plugin.module}` in Python"
            )


def _read_recorded(path: Path) -> list[Plugin]:
    """The plugins that a run or pack recorded in `path`; an older run has no such file."""
    if not path.is_file():
        return []
    try:
        records = json.loads(read_regular(path))["plugins"]
        return [
            Plugin(
                str(r["module"]),
                str(r["file"]),
                str(r["sha256"]),
                {str(kind): tuple(map(str, names)) for kind, names in r.get("registered", {}).items()},
            )
            for r in records
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunFolderError(f"{path}: not what a run writes ({error!r})") from None


def _find(name: str, folders: Sequence[Path]) -> Path | None:
    """The file of a module in the first folder that has it; None where only installed ones are left."""
    relative = Path(*name.split("."))
    for folder in folders:
        for candidate in (folder / relative.with_suffix(".py"), folder / relative / "__init__.py"):
            if candidate.is_file():
                return candidate.resolve()
    return None


def _load(name: str, file: Path | None) -> Plugin:
    before = {kind: dict(registry.entries()) for kind, registry in REGISTRIES.items()}
    try:
        module = _import(name, file)
        new = {
            kind: tuple(entry for entry in registry.entries() if entry not in before[kind])
            for kind, registry in REGISTRIES.items()
        }
        _refuse_unfinished(new)
    except Exception as error:
        for kind, registry in REGISTRIES.items():
            registry.restore(before[kind])
        sys.modules.pop(name, None)
        raise ConfigError(f"plugin {name}: {_reason(error)}{_place(error, file)}") from None
    source = Path(module.__file__ or "")
    digest = hashlib.sha256(source.read_bytes()).hexdigest() if source.is_file() else ""
    return Plugin(name, str(source), digest, {kind: names for kind, names in new.items() if names})


def _import(name: str, file: Path | None) -> ModuleType:
    if file is None:
        return importlib.import_module(name)
    there = sys.modules.get(name)
    if there is not None and Path(there.__file__ or "").resolve() != file:
        raise ValueError(
            f"the name is taken by the module {there.__file__ or 'of Python itself'}; rename {file}"
        )
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _refuse_unfinished(new: Mapping[str, Sequence[str]]) -> None:
    """Raise where a class was registered whose abstract methods are not all written."""
    for kind, names in new.items():
        for name in names:
            factory = REGISTRIES[kind].get(name + "x" if name.endswith(":") else name)
            if inspect.isabstract(factory):
                lacks = ", ".join(sorted(factory.__abstractmethods__))  # type: ignore[attr-defined]
                raise ValueError(f"{REGISTRIES[kind].kind} {name!r} lacks the method {lacks}")


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
        return text
    if isinstance(error, ModuleNotFoundError):
        return f"{text}; put the file beside the config, into this folder, or install it"
    return f"cannot be imported: {type(error).__name__}: {text}"


def _place(error: Exception, file: Path | None) -> str:
    """The line of the plugin's own file at which it failed."""
    if file is None:
        return ""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file)]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    return f" ({file}:{lines[-1]})" if lines else f" ({file})"
