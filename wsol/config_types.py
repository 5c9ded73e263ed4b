"""From plain values to declared types, or an error that says where and what was expected."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wsol.errors import ConfigError
from wsol.registry import suggest


def convert(value: Any, annotation: Any, what: str) -> Any:
    """`value` as the type that `annotation` names.

    Understands bool, int, float, str, Path, None, Literal, unions, tuples and lists, mappings, Any.
    Only conversions that lose nothing are made: from an int to a float, from '5e-4' (which YAML 1.1 reads
    as a word) to a float, from a list to a tuple. Everything else raises ConfigError,
    beginning with `what`.
    """
    origin = typing.get_origin(annotation)
    if annotation is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        return _union(value, typing.get_args(annotation), what)
    if origin is typing.Literal:
        return _literal(value, typing.get_args(annotation), what)
    if origin in (tuple, list, Sequence):
        return _sequence(value, annotation, what)
    if origin in (dict, Mapping):
        return _mapping(value, annotation, what)
    if annotation is None or annotation is type(None):
        if value is None:
            return None
    elif annotation is float:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                raise ConfigError(f"{what}: a whole number that is too large") from None
        if isinstance(value, str):
            try:
                return float(value)
            except ValueError:
                pass
    elif annotation is int:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    elif annotation is Path:
        if isinstance(value, (str, Path)) and str(value):
            return Path(value)
    elif isinstance(annotation, type) and isinstance(value, annotation):
        return value
    raise ConfigError(f"{what}: expected {describe(annotation)}, got {shown(value)}")


def describe(annotation: Any) -> str:
    """A type in words that a user understands."""
    origin = typing.get_origin(annotation)
    args = typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(describe(a) for a in args)
    if origin is typing.Literal:
        return " or ".join(repr(a) for a in args)
    if origin in (tuple, list, Sequence):
        return f"a list of {describe(args[0])}" if args else "a list"
    if origin in (dict, Mapping):
        return "a mapping"
    words = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "a word",
        Path: "a path",
        type(None): "null",
    }
    return words.get(annotation, getattr(annotation, "__name__", str(annotation)))


def shown(value: Any) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _union(value: Any, members: tuple[Any, ...], what: str) -> Any:
    # An exact match comes first, so that `int | str` keeps '3' a word and 3 a number.
    for member in members:
        if isinstance(member, type) and type(value) is member:
            return value
    for member in members:
        try:
            return convert(value, member, what)
        except ConfigError:
            continue
    choices = [str(a) for m in members if typing.get_origin(m) is typing.Literal for a in typing.get_args(m)]
    expected = " or ".join(describe(m) for m in members if m is not type(None) or not choices)
    raise ConfigError(f"{what}: expected {expected}, got {shown(value)}{_near(value, choices)}")


def _literal(value: Any, choices: tuple[Any, ...], what: str) -> Any:
    for choice in choices:
        if value == choice and type(value) is type(choice):
            return choice
    expected = " or ".join(repr(c) for c in choices)
    raise ConfigError(f"{what}: expected {expected}, got {shown(value)}{_near(value, map(str, choices))}")


def _near(value: Any, choices: Iterable[str]) -> str:
    """`; did you mean 'x'?` where a word is near one of the choices, else nothing."""
    hint = suggest(value, choices) if isinstance(value, str) else ""
    return hint if "did you mean" in hint else ""


def _sequence(value: Any, annotation: Any, what: str) -> Any:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise ConfigError(f"{what}: expected {describe(annotation)}, got {shown(value)}")
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    build = list if origin is list else tuple
    if origin is tuple and args and args[-1] is not Ellipsis:
        if len(value) != len(args):
            raise ConfigError(f"{what}: expected {len(args)} values, got {shown(value)}")
        return tuple(convert(v, a, f"{what}[{i}]") for i, (v, a) in enumerate(zip(value, args, strict=True)))
    inner = args[0] if args else Any
    return build(convert(v, inner, f"{what}[{i}]") for i, v in enumerate(value))


def _mapping(value: Any, annotation: Any, what: str) -> Any:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{what}: expected {describe(annotation)}, got {shown(value)}")
    key_type, value_type = typing.get_args(annotation) or (Any, Any)
    return {convert(k, key_type, what): convert(v, value_type, f"{what}.{k}") for k, v in value.items()}
