"""Plain values to declared types: what is taken, what is refused, and in which words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from wsol.config_types import convert
from wsol.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "annotation", "result"),
    [
        (3, int, 3),
        (3, float, 3.0),
        ("5e-4", float, 5e-4),  # YAML 1.1 reads 5e-4 as a word
        (True, bool, True),
        ("a", str, "a"),
        ("a/b", Path, Path("a/b")),
        (None, int | None, None),
        (3, int | None, 3),
        ("3", int | str, "3"),
        ("paper", Literal["paper", "original"] | tuple[str, ...], "paper"),
        (["a", "b"], Literal["paper", "original"] | tuple[str, ...], ("a", "b")),
        ([1, 2], tuple[int, ...], (1, 2)),
        ([1, 2.5], tuple[int, float], (1, 2.5)),
        ([1], list[float], [1.0]),
        ({"every": 5}, Mapping[str, int], {"every": 5}),
        ({"x": object}, Any, {"x": object}),
    ],
)
def test_takes(value: Any, annotation: Any, result: Any) -> None:
    converted = convert(value, annotation, "here")
    assert converted == result
    assert type(converted) is type(result)


@pytest.mark.parametrize(
    ("value", "annotation", "message"),
    [
        ("x", int, "expected a whole number, got 'x'"),
        (True, int, "expected a whole number, got True"),
        (True, float, "expected a number, got True"),
        (2.5, int, "expected a whole number, got 2.5"),
        (1, bool, "expected true or false, got 1"),
        (1, str, "expected a word, got 1"),
        ("abc", float, "expected a number, got 'abc'"),
        ("papr", Literal["paper", "original"], r"got 'papr'; did you mean 'paper'\?"),
        ("papr", Literal["paper"] | tuple[str, ...], r"did you mean 'paper'\?"),
        ("ab", tuple[str, ...], "expected a list of a word, got 'ab'"),
        ([1, "b"], tuple[int, ...], r"here\[1\]: expected a whole number"),
        ([1], tuple[int, int], "expected 2 values"),
        ({"a": "b"}, Mapping[str, int], r"here\.a: expected a whole number"),
        ({}, int | None, "expected a whole number or null"),
        ("", Path, "expected a path"),
        ("x" * 200, int, r"\.\.\.$"),
    ],
)
def test_refuses(value: Any, annotation: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        convert(value, annotation, "here")
