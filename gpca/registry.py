"""Attentions by name: `build_attention("gpca", channels=200, variant="local")`."""

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gpca.base import ChannelAttention

_ATTENTIONS: dict[str, type[ChannelAttention]] = {}

AttentionClass = TypeVar("AttentionClass", bound=type[ChannelAttention])


def register_attention(name: str) -> Callable[[AttentionClass], AttentionClass]:
    """Class decorator: make an attention known by `name`.

    The first line of the class's docstring becomes its description, the arguments of its constructor
    after `channels` become its options.

    Raises:
        ValueError: the name is taken.
    """

    def register(attention: AttentionClass) -> AttentionClass:
        if name in _ATTENTIONS:
            taken_by = _ATTENTIONS[name].__name__
            raise ValueError(f"the attention name {name!r} is already taken by {taken_by}")
        _ATTENTIONS[name] = attention
        return attention

    return register


def available_attentions() -> Mapping[str, str]:
    """Every known name with a one-line description."""
    return {
        name: inspect.getdoc(attention).splitlines()[0]  # type: ignore[union-attr]
        for name, attention in _ATTENTIONS.items()
    }


def attention_options(name: str) -> Mapping[str, Any]:
    """What may be set for an attention: option name -> type annotation, in the constructor's order.

    Raises:
        ValueError: no attention has this name.
    """
    signature = inspect.signature(_find(name), eval_str=True)
    return {
        option.name: option.annotation
        for option in signature.parameters.values()
        if option.name != "channels"
    }


def build_attention(name: str, channels: int, **options: Any) -> ChannelAttention:
    """Build the attention called `name` for maps with `channels` channels.

    Raises:
        ValueError: no attention has this name (near names are listed), or an option has a bad value.
        TypeError: the attention does not take one of the options.
    """
    attention = _find(name)
    accepted = attention_options(name)
    unknown = [option for option in options if option not in accepted]
    if unknown:
        takes = ", ".join(accepted) or "no options"
        raise TypeError(f"attention {name!r} has no option {', '.join(unknown)}; it takes {takes}")
    return attention(channels, **options)


def _find(name: str) -> type[ChannelAttention]:
    if name in _ATTENTIONS:
        return _ATTENTIONS[name]
    near = difflib.get_close_matches(str(name).lower(), _ATTENTIONS, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise ValueError(f"unknown attention {name!r}; {hint}known: {', '.join(_ATTENTIONS)}")
