"""Choice by name: look-up, options from signatures, families, and helpful refusals."""

from __future__ import annotations

import pytest

from wsol.errors import ConfigError
from wsol.registry import Registry, suggest


@pytest.fixture
def registry() -> Registry:
    registry = Registry("shape", homes=(), supplied=("canvas",))

    @registry.register("circle", "round")
    class Circle:
        def __init__(self, canvas: int, radius: float, filled: bool = False) -> None:
            self.settings = (canvas, radius, filled)

    @registry.register("file:", "from a file")
    def load(name: str, scale: float = 1.0) -> tuple[str, float]:
        return name, scale

    return registry


def test_create_passes_supplied_and_options(registry: Registry) -> None:
    assert registry.create("circle", 7, radius=2.0).settings == (7, 2.0, False)


def test_options_leave_out_what_the_builder_supplies(registry: Registry) -> None:
    options = registry.options("circle")
    assert list(options) == ["radius", "filled"]
    assert options["radius"].required
    assert options["radius"].annotation is float
    assert options["filled"].default is False


def test_family_hands_over_the_member(registry: Registry) -> None:
    assert registry.create("file:star", scale=2.0) == ("star", 2.0)
    assert list(registry.options("file:star")) == ["scale"]


def test_unknown_name_lists_the_near_ones(registry: Registry) -> None:
    with pytest.raises(ConfigError, match=r"unknown shape 'cirle'; did you mean 'circle'"):
        registry.get("cirle")


def test_family_without_member_is_unknown(registry: Registry) -> None:
    with pytest.raises(ConfigError, match="unknown shape 'nofamily:x'"):
        registry.get("nofamily:x")


def test_duplicate_registration_raises(registry: Registry) -> None:
    with pytest.raises(ValueError, match="'circle' is taken"):
        registry.register("circle", "again")(lambda: None)


def test_suggest_lists_all_where_none_is_near() -> None:
    assert suggest("zzz", ["b", "a"]) == "; known: a, b"
