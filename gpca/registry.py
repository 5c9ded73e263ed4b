"""Attentions by name: `build_attention("gpca", channels=200, variant="local")`."""

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

import torch

from gpca.base import Attention

_ATTENTIONS: dict[str, type[Attention]] = {}

#: Arguments of a constructor that are no options: they say where the attention goes.
PLACE = ("channels", "device", "dtype")

AttentionClass = TypeVar("AttentionClass", bound=type[Attention])


def register_attention(name: str) -> Callable[[AttentionClass], AttentionClass]:
    """Class decorator: make an attention known by `name`.

    The first line of the class's docstring becomes its description. The arguments of its constructor after
    `channels`, without `device` and `dtype`, become its options.

    Raises:
        TypeError: not a subclass of `Attention`.
        ValueError: the name is taken, the class lacks a method that its kind needs, or has no docstring.
    """

    def register(attention: AttentionClass) -> AttentionClass:
        if name in _ATTENTIONS:
            taken_by = _ATTENTIONS[name].__name__
            raise ValueError(f"the attention name {name!r} is already taken by {taken_by}")
        if not (inspect.isclass(attention) and issubclass(attention, Attention)):
            raise TypeError(f"attention {name!r} must be a subclass of gpca.Attention, got {attention!r}")
        lacks = sorted(getattr(attention, "__abstractmethods__", ()))
        if lacks:
            raise ValueError(f"attention {name!r} lacks the method {', '.join(lacks)}")
        if not attention.__doc__:
            raise ValueError(f"attention {name!r} needs a docstring: its first line describes it")
        _ATTENTIONS[name] = attention
        return attention

    return register


def forget_attention(name: str) -> None:
    """Take an attention back out of the registry, e.g. one of a module that failed later on."""
    del _ATTENTIONS[name]


def available_attentions() -> Mapping[str, str]:
    """Every known name with a one-line description."""
    return {
        name: inspect.getdoc(attention).splitlines()[0]  # type: ignore[union-attr]
        for name, attention in _ATTENTIONS.items()
    }


def attention_class(name: str) -> type[Attention]:
    """The class that is registered under a name.

    Raises:
        ValueError: no attention has this name (near names are listed).
    """
    if not isinstance(name, str):
        raise ValueError(f"an attention is named by a text such as 'gpca', got {name!r}")
    if name in _ATTENTIONS:
        return _ATTENTIONS[name]
    near = difflib.get_close_matches(name.lower(), _ATTENTIONS, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise ValueError(f"unknown attention {name!r}; {hint}known: {', '.join(_ATTENTIONS)}")


def attention_options(name: str) -> Mapping[str, Any]:
    """What may be set for an attention: option name -> type annotation, in the constructor's order.

    Raises:
        ValueError: no attention has this name.
    """
    signature = inspect.signature(attention_class(name), eval_str=True)
    return {
        option.name: option.annotation for option in signature.parameters.values() if option.name not in PLACE
    }


def build_attention(
    name: str,
    channels: int,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    **options: Any,
) -> Attention:
    """Build the attention called `name` for maps with `channels` channels.

    device, dtype: of its parameters and buffers; works for every attention, also for one whose constructor
        does not take them.

    Raises:
        ValueError: no attention has this name (near names are listed), or an option has a bad value.
        TypeError: the attention does not take one of the options, or not with a value of this type.
    """
    accepted = attention_options(name)
    unknown = [option for option in options if option not in accepted]
    if unknown:
        takes = ", ".join(accepted) or "no options"
        raise TypeError(f"attention {name!r} has no option {', '.join(unknown)}; it takes {takes}")
    for option, value in options.items():
        if not _fits(value, accepted[option]):
            wanted = getattr(accepted[option], "__name__", accepted[option])
            raise TypeError(f"option {option} of attention {name!r} must be {wanted}, got {value!r}")
    return attention_class(name)(channels, **options).to(device=device, dtype=dtype)


def _fits(value: Any, annotation: Any) -> bool:
    """Whether a value has a plain type that an option may have; the attention itself checks all others."""
    members = get_args(annotation) or (annotation,)
    if not all(member in (int, float, bool, str, type(None)) for member in members):
        return True
    if isinstance(value, bool) or not isinstance(value, int):
        return type(value) in members
    return int in members or float in members
