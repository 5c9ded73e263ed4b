"""The configs that come with the package: found by name, listed, copied.

In the repository they are the folder `configs/`, in an installed package a copy of it inside of `wsol`. The
name of a config is its path in that folder without `.yaml`: `cub/vgg16_adl_gpca`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from wsol.errors import ConfigError
from wsol.runs.files import write_text
from wsol.yamlfile import read_yaml

SUFFIX = ".yaml"
_INSTALLED = Path(__file__).resolve().parent / "configs"
_CLONED = Path(__file__).resolve().parents[1] / "configs"


@dataclass(frozen=True)
class ShippedConfig:
    """A config that comes with the package. summary: its first line of comment."""

    name: str
    path: Path
    summary: str


def shipped_configs() -> dict[str, ShippedConfig]:
    """Every config that comes with the package, by name."""
    folder = _INSTALLED if _INSTALLED.is_dir() else _CLONED
    found = {}
    for path in sorted(folder.rglob(f"*{SUFFIX}")):
        name = path.relative_to(folder).with_suffix("").as_posix()
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        found[name] = ShippedConfig(name, path, first.lstrip("# ") if first.startswith("#") else "")
    return found


def find_config(source: Path | str) -> Path:
    """The file that a user means: a file, with or without `.yaml`, or else a config of the package by name.

    Raises ConfigError with near names where there is none.
    """
    path = Path(source)
    if path.exists() and not path.is_dir():
        return path
    beside = path.with_name(path.name + SUFFIX) if path.name else path
    if beside.is_file():
        return beside
    shipped = shipped_configs()
    if path.as_posix() in shipped:
        return shipped[path.as_posix()].path
    if path.is_dir():
        raise ConfigError(f"{path} is a folder, not a config file")
    raise ConfigError(f"{path}: no such config file{_near(path, shipped)}")


def shipped_config(name: str) -> ShippedConfig:
    """The config of the package with this name; ConfigError with near names where there is none."""
    shipped = shipped_configs()
    if name not in shipped:
        raise ConfigError(f"no config {name!r} comes with wsol{_near(Path(name), shipped)}")
    return shipped[name]


def copy_config(name: str, folder: Path | str = "configs", *, overwrite: bool = False) -> list[Path]:
    """Copy a config of the package, and every config that it extends, into `folder`; returns the copies.

    They keep their sub-folder (`cub/`) and their bytes, so that `extends:` and the comments stay true. The
    asked one comes first. An equal file that is there already is fine, another one is not replaced unless
    `overwrite` is given.
    """
    found = shipped_config(name)
    top = found.path.parents[name.count("/")]
    texts: dict[Path, str] = {}
    path: Path | None = found.path
    while path is not None:
        texts[Path(folder) / path.relative_to(top)] = path.read_text(encoding="utf-8")
        base = read_yaml(path).value.get("extends")
        path = (path.parent / base).resolve() if base else None
    for copy, text in texts.items():
        if copy.exists() and not overwrite and copy.read_text(encoding="utf-8", errors="replace") != text:
            raise ConfigError(f"{copy} is there already and is another file; --overwrite replaces it")
    for copy, text in texts.items():
        write_text(copy, text, parents=True)
    return list(texts)


def _near(path: Path, shipped: dict[str, ShippedConfig]) -> str:
    """What the user may have meant: names like this one, by the whole path or by its last part."""
    wanted = path.with_suffix("").as_posix() if path.suffix == SUFFIX else path.as_posix()
    last = wanted.rpartition("/")[2]
    same = [name for name in shipped if name.rpartition("/")[2] == last]
    by_last = {name.rpartition("/")[2]: name for name in shipped}
    near = [
        *difflib.get_close_matches(wanted, shipped, n=3, cutoff=0.7),
        *(by_last[n] for n in difflib.get_close_matches(last, by_last, n=3, cutoff=0.7)),
    ]
    names = same or list(dict.fromkeys(near))[:3]
    if not names:
        return "; 'wsol configs' lists those that come with wsol"
    return f"; did you mean {' or '.join(repr(n) for n in names)}? ('wsol configs' lists them)"
