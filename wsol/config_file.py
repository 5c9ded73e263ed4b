"""Configs as YAML, read strictly: every fault names its file, line and the nearest known word.

::

    extends: base.yaml
    data:  {name: cub, root: data/CUB_200_2011, image_size: 224}
    model: {backbone: vgg16, drop: {name: adl, gamma: 0.8}, attention: gpca}

A component is written as its name, or as a mapping with `name` and its options, and the options are checked
against what the component takes. Where a file or `--set` changes the name of a component, the options of the
former component are dropped.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from wsol.config import Component, Config
from wsol.config_moved import move_keys, state_former_options
from wsol.config_types import convert, shown
from wsol.errors import ConfigError
from wsol.plugins import load_installed, load_plugins
from wsol.registry import Registry, suggest
from wsol.runs.files import real_path
from wsol.yamlfile import KeyPath, Located, Place, parse_override, read_yaml

D = TypeVar("D")

OPTIONAL_SECTIONS = ("classifier", "refine", "network")  # left out of a config that has none


def load_config(
    path: Path | str,
    overrides: Sequence[str] = (),
    set: Mapping[str, Any] | None = None,
    of_run: bool = False,
    base: Mapping[str, Any] | None = None,
) -> Config:
    """The config in a YAML file, checked whole before anything else runs.

    overrides: texts `a.b=c` as `--set` takes them, c read as YAML. set: values by their dotted key, taken as
    they are: `{"data.root": "birds #3"}`. Both go on top of the file, `set` last. of_run: whether
    it is the config that a run folder keeps: a missing option means what it meant when the run was trained.
    base: nested values that the file goes on top of.
    """
    located = _merge(Located(dict(base or {})), _read_extended(Path(path), ()))
    if of_run:
        located = state_former_options(located)
    for text in overrides:
        keys, value = parse_override(text)
        located = _override(located, keys, value, f"--set {text}")
    return _finish(_override_all(located, set or {}), beside=not of_run)


def config_from_dict(
    values: Mapping[str, Any],
    set: Mapping[str, Any] | None = None,
    base: Mapping[str, Any] | None = None,
) -> Config:
    """A config from nested plain values, on top of those in `base`, checked like a file."""
    located = _merge(Located(dict(base or {})), Located(dict(values)))
    return _finish(_override_all(located, set or {}))


def _override_all(located: Located, values: Mapping[str, Any]) -> Located:
    for key, value in values.items():
        plain = str(value) if isinstance(value, Path) else value
        located = _override(located, tuple(key.split(".")), plain, f"{key}={shown(plain)}")
    return located


def _override(located: Located, keys: KeyPath, value: Any, words: str) -> Located:
    nested: Any = value
    for key in reversed(keys):
        nested = {key: nested}
    around = [keys[:i] for i in range(1, len(keys)) if keys[:i] not in located.places]
    if not isinstance(value, Mapping):  # what was below is gone, and so are its lines in the file
        kept = {path: place for path, place in located.places.items() if path[: len(keys)] != keys}
        located = Located(located.value, kept)
    given = (*around, *_paths_in(value, keys))
    return _merge(located, Located(nested, dict.fromkeys(given, Place(words))))


def _paths_in(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    """The path of a value and those of all that is in it."""
    yield path
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield from _paths_in(child, (*path, str(key)))


def _finish(located: Located, beside: bool = True) -> Config:
    """The config of the merged values. Plugins come first: the rest may name what they register.

    beside: whether modules beside the file are plugins; never those in a run folder.
    """
    load_installed()
    if "plugins" in located.value:
        place = located.place(("plugins",))
        names = convert(located.value["plugins"], tuple[str, ...], f"{place}: plugins")
        load_plugins(names, [place.folder] if beside and place.folder else [])
    return _build(Config, _for_network(move_keys(located)), ())


def _for_network(located: Located) -> Located:
    """A config with a network has no model, and measures classes unless it names another protocol."""
    values = located.value
    if values.get("network") is None:
        return located
    if "model" in values:
        place = located.place(("model",))
        raise ConfigError(f"{place}: a config has a model or a network (a plain classifier), not both")
    chosen = values.get("eval") or {}
    if isinstance(chosen, dict) and "protocol" not in chosen:
        return replace(located, value={**values, "eval": {**chosen, "protocol": "classes"}})
    return located


def config_to_dict(config: Any) -> dict[str, Any]:
    """The resolved config as nested plain values that load back equal."""
    result: dict[str, Any] = {}
    for f in fields(config):
        value = getattr(config, f.name)
        if value is None and f.name in OPTIONAL_SECTIONS:
            continue
        if f.name == "model" and getattr(config, "network", None) is not None:
            continue  # the network stands for it
        if f.name == "options" and isinstance(config, Component):
            result.update({k: _plain(v) for k, v in value.items()})
        else:
            result[f.name] = _plain(value)
    return result


def dump_config(config: Config) -> str:
    """The resolved config as YAML."""
    return yaml.safe_dump(config_to_dict(config), sort_keys=False, width=100)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return config_to_dict(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _read_extended(path: Path, chain: tuple[Path, ...]) -> Located:
    """A file on top of the ones that it extends."""
    located = read_yaml(path)  # first: a link that leads to itself is refused here
    resolved = path.resolve()
    if resolved in chain:
        raise ConfigError(f"{path}: extends itself ({' -> '.join(p.name for p in (*chain, resolved))})")
    base = located.value.pop("extends", None)
    if base is None:
        return located
    if not isinstance(base, str):
        raise ConfigError(f"{located.place(('extends',))}: extends: expected a file name, got {shown(base)}")
    return _merge(_read_extended(path.parent / base, (*chain, resolved)), located)


def _merge(base: Located, top: Located) -> Located:
    """`top` over `base`, key by key; a component whose name changes loses the options it had."""
    merged = _merge_values(base.value, top.value, Config)
    return Located(merged, {**base.places, **top.places})


def _merge_values(base: Any, top: Any, cls: type | None) -> Any:
    component = cls is not None and issubclass(cls, Component)
    if component:
        base = {"name": base} if isinstance(base, str) else base
        top = {"name": top} if isinstance(top, str) else top
    if cls is not None and not isinstance(base, dict):
        return base  # kept as it is, so that the error names its own place
    if not isinstance(base, dict) or not isinstance(top, dict):
        return top
    if component and "name" in top and top["name"] != base.get("name", top["name"]):
        shared = {f.name for f in fields(cls)} if is_dataclass(cls) else set()
        base = {k: v for k, v in base.items() if k in shared}
    children = typing.get_type_hints(cls) if cls is not None else {}
    result = dict(base)
    for key, value in top.items():
        child = _section_class(children[key]) if key in children else None
        result[key] = _merge_values(base[key], value, child) if key in base else value
    return result


def _build(cls: type[D], located: Located, path: KeyPath) -> D:
    """An instance of the dataclass `cls` from the values at `path`."""
    values: Any = located.value
    for key in path:
        values = values[int(key)] if isinstance(values, list) else values[key]
    component = issubclass(cls, Component)
    if component and isinstance(values, str):
        values = {"name": values}
    dotted = ".".join(path)
    if not isinstance(values, dict):
        what = "a name or a mapping" if component else "a mapping"
        raise ConfigError(f"{located.place(path)}: {dotted}: expected {what}, got {shown(values)}")
    hints = typing.get_type_hints(cls)
    known = {f.name for f in fields(cls)} - {"options"}  # type: ignore[arg-type]
    settings: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in values.items():
        here = (*path, key)
        if key not in known:
            rest[key] = value
        elif section := _section_class(hints[key]):
            settings[key] = _build(section, located, here)
        elif item := _item_class(hints[key]):
            if not isinstance(value, list):
                place, dotted = located.place(here), ".".join(here)
                raise ConfigError(f"{place}: {dotted}: expected a list, got {shown(value)}")
            settings[key] = tuple(_build(item, located, (*here, str(i))) for i in range(len(value)))
        else:
            settings[key] = convert(value, hints[key], f"{located.place(here)}: {'.'.join(here)}")
    if issubclass(cls, Component):
        settings.setdefault("name", cls.__dataclass_fields__["name"].default)
        settings["options"] = _options(cls, settings["name"], rest, known, located, path)
    elif rest:
        key = next(iter(rest))
        raise ConfigError(
            f"{located.place((*path, key))}: unknown key {'.'.join((*path, key))!r}{suggest(key, known)}"
        )
    instance = cls(**settings)
    for key, reason in getattr(instance, "problems", tuple)():
        here = (*path, *key.split("."))
        # Where two values do not fit together, the error names the one that was set on top of the file.
        place = located.override_in(path) or located.place(here)
        raise ConfigError(f"{place}: {'.'.join(here)}: {reason}")
    return instance


def _section_class(annotation: Any) -> type | None:
    """The dataclass of a section, also of one that may be left out (`C | None`); None for any other type."""
    found = [a for a in (annotation, *typing.get_args(annotation)) if isinstance(a, type) and is_dataclass(a)]
    return found[0] if found and typing.get_origin(annotation) is not tuple else None


def _item_class(annotation: Any) -> type | None:
    """The dataclass C of `tuple[C, ...]`; None for any other type."""
    first = next(iter(typing.get_args(annotation)), None)
    return first if typing.get_origin(annotation) is tuple and is_dataclass(first) else None  # type: ignore


def _options(
    cls: type, name: str, given: Mapping[str, Any], shared: set[str], located: Located, path: KeyPath
) -> dict[str, Any]:
    """The component's own options, each of the type that its signature declares."""
    registry: Registry = cls.registry  # type: ignore[attr-defined]
    try:
        takes = registry.options(name)
    except ConfigError as error:
        raise ConfigError(f"{located.place((*path, 'name'))}: {'.'.join(path)}: {error}") from None
    options: dict[str, Any] = {}
    for key, value in given.items():
        here = (*path, key)
        where = f"{located.place(here)}: {'.'.join(here)}"
        if key not in takes:
            hint = suggest(key, {*takes, *shared})
            raise ConfigError(f"{where}: {registry.kind} {name!r} takes no option {key!r}{hint}")
        options[key] = _beside_config(convert(value, takes[key].annotation, where), located.place(here))
    for key in getattr(registry.get(name), "recorded_options", ()):
        options.setdefault(key, takes[key].default)
    missing = [o.name for o in takes.values() if o.required and o.name not in options]
    if missing:
        raise ConfigError(
            f"{located.place(path)}: {'.'.join(path)}: {registry.kind} {name!r} needs {', '.join(missing)}"
        )
    return options


def _beside_config(value: Any, place: Place) -> Any:
    """A path of a component's own, such as a file of annotations, is looked for beside the config first."""
    if isinstance(value, Path) and place.folder is not None and (place.folder / value).exists():
        return real_path(place.folder / value)
    return value
