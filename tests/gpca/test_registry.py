"""Attentions by name."""

from typing import Literal, get_args, get_origin

import pytest
import torch
from torch import Tensor

from gpca import (
    GPCA,
    READINGS,
    SE,
    ChannelAttention,
    Constant,
    attention_options,
    available_attentions,
    build_attention,
    register_attention,
)
from gpca.registry import _ATTENTIONS


def test_available_attentions_describes_each_in_one_line() -> None:
    available = available_attentions()
    assert set(available) == {
        *("identity", "constant", "se", "srp", "gpca"),
        *("eca", "cbam", "cbam-s", "nlnet", "gcnet", "gct", "bam"),
    }
    for description in available.values():
        assert description.endswith(".")
        assert "\n" not in description
        assert 10 < len(description) < 110


def test_build_passes_the_options_on() -> None:
    gpca = build_attention("gpca", channels=200, variant="local", delta=1e3, window=7)
    assert isinstance(gpca, GPCA)
    assert (gpca.variant, gpca.delta, gpca.channels) == ("local", 1e3, 200)
    assert isinstance(build_attention("se", 8), SE)
    constant = build_attention("constant", 8, value=0.3)
    assert isinstance(constant, Constant)
    assert constant.value == 0.3


@pytest.mark.parametrize(
    ("name", "near"), [("gcpa", "gpca"), ("GPCA", "gpca"), ("sre", "se"), ("const", "constant")]
)
def test_unknown_name_lists_near_ones(name: str, near: str) -> None:
    with pytest.raises(ValueError, match=f"did you mean .*{near}"):
        build_attention(name, 8)


def test_unknown_name_without_a_near_one_lists_all() -> None:
    with pytest.raises(ValueError, match=f"'xyzzy'; known: {', '.join(available_attentions())}"):
        build_attention("xyzzy", 8)


def test_unknown_option_is_named_with_the_accepted_ones() -> None:
    with pytest.raises(TypeError, match="'se' has no option redution; it takes ratio"):
        build_attention("se", 8, redution=4)
    with pytest.raises(TypeError, match="it takes no options"):
        build_attention("identity", 8, value=1)


def test_options_with_their_types() -> None:
    assert attention_options("identity") == {}
    assert attention_options("constant") == {"value": float}
    assert attention_options("srp") == {"ratio": int, "side_share": float}
    options = attention_options("gpca")
    assert list(options)[:4] == ["variant", "delta", "reduction", "normalize"]
    assert get_origin(options["variant"]) is Literal
    assert get_args(get_args(options["reduction"])[0]) == ("mean", "sum")
    assert get_args(options["reading"]) == tuple(READINGS)
    with pytest.raises(ValueError, match="unknown attention"):
        attention_options("none")


def test_a_new_attention_can_be_registered_but_not_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpca.registry._ATTENTIONS", dict(_ATTENTIONS))

    @register_attention("half")
    class Half(ChannelAttention):
        """Half of everything."""

        def compute_mask(self, x: Tensor) -> Tensor:
            return torch.full(x.shape[:2], 0.5)

    assert available_attentions()["half"] == "Half of everything."
    x = torch.ones(1, 2, 3, 3)
    assert torch.equal(build_attention("half", 2)(x), x / 2)
    with pytest.raises(ValueError, match="already taken by Half"):
        register_attention("half")(SE)


@pytest.mark.parametrize("value", [0, -0.1, 1.1, float("nan")])
def test_constant_outside_its_range(value: float) -> None:
    with pytest.raises(ValueError, match="value"):
        Constant(4, value)
