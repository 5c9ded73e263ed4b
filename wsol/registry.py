"""Choice by name: one small registry for each kind of thing that users pick and extend.

A component is a class or function registered under a name with one line that describes it. The parameters
of its signature, less those that the builder supplies, are the options that a config may set; so options
are declared once, where they are used::

    @DROPS.register("adl", "attention-based dropout layer (Choe and Shim, 2019)")
    class ADL(DropBlock):
        def __init__(self, drop_rate: float = 0.75, gamma: float = 0.8) -> None: ...

A registry imports its home modules at the first look-up, so that reading a config stays cheap. A name that
ends in a colon is a family: `timm:` answers to `timm:resnet18` and hands `resnet18` to its factory.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from wsol.errors import ConfigError

T = TypeVar("T", bound=Callable[..., Any])


MOST_NAMES = 30  # in a line that a person reads


def suggest(name: str, known: Iterable[str]) -> str:
    """`, did you mean 'x'?` for the nearest known names, and the known ones where none is near."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(repr(n) for n in near)}?"
    if len(known) > MOST_NAMES:
        return f"; known: {', '.join(known[:MOST_NAMES])} and {len(known) - MOST_NAMES} more"
    return f"; known: {', '.join(known)}" if known else ""


@dataclass(frozen=True)
class Option:
    """One thing that a config may set on a component: its name, its type and its default."""

    name: str
    annotation: Any
    default: Any
    required: bool


@dataclass(frozen=True)
class Entry:
    name: str
    summary: str
    factory: Callable[..., Any]


class Registry:
    """Components of one kind by name.

    Args:
        kind: what the components are called in messages, e.g. ``"backbone"``.
        homes: the modules that register components of this kind when imported.
        supplied: parameters that the builder passes and a config may not.
        required: methods that a registered class must have, with a body of their own.
    """

    def __init__(
        self,
        kind: str,
        homes: tuple[str, ...],
        supplied: tuple[str, ...] = (),
        required: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.homes = homes
        self.supplied = frozenset(supplied)
        self._required = required
        self._entries: dict[str, Entry] = {}
        self._imported = False

    def register(self, name: str, summary: str) -> Callable[[T], T]:
        """Decorator that makes a component known under `name`.

        Raises ValueError where the name is taken, or where a class lacks a method of its kind.
        """

        def add(factory: T) -> T:
            if name in self._entries:
                raise ValueError(f"the {self.kind} name {name!r} is taken")
            if inspect.isclass(factory):
                abstract: frozenset[str] = getattr(factory, "__abstractmethods__", frozenset())
                lacks = [
                    m for m in self._required if m in abstract or not callable(getattr(factory, m, None))
                ]
                if lacks:
                    raise ValueError(f"{self.kind} {name!r} lacks the method {', '.join(lacks)}")
            self._entries[name] = Entry(name, summary, factory)
            return factory

        return add

    def entries(self) -> Mapping[str, Entry]:
        """Every component of this kind, in the order of registration."""
        if not self._imported:
            self._imported = True  # set first: a home may look things up while it is imported
            for home in self.homes:
                importlib.import_module(home)
        return self._entries

    def restore(self, entries: Mapping[str, Entry]) -> None:
        """Remove what was registered since `entries` was read, so that a plugin that fails leaves nothing."""
        self._entries = dict(entries)

    def get(self, name: str) -> Callable[..., Any]:
        """The factory of `name`; an unknown name raises ConfigError with the near ones."""
        entries = self.entries()
        if name in entries:
            return entries[name].factory
        family, colon, member = name.partition(":")
        if colon and member and family + colon in entries:
            return partial(entries[family + colon].factory, member)
        raise ConfigError(f"unknown {self.kind} {name!r}{suggest(name, entries)}")

    def options(self, name: str) -> dict[str, Option]:
        """What a config may set on `name`: the parameters of its signature less the supplied ones."""
        factory = self.get(name)
        inner = factory.func if isinstance(factory, partial) else factory
        hints = typing.get_type_hints(inner.__init__ if inspect.isclass(inner) else inner)
        return {
            p.name: Option(p.name, hints.get(p.name, Any), p.default, p.default is inspect.Parameter.empty)
            for p in inspect.signature(factory).parameters.values()
            if p.name not in self.supplied
            and p.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        }

    def taken(self, name: str, offered: Mapping[str, Any]) -> dict[str, Any]:
        """Of what the builder can supply, what the component asks for in its signature."""
        parameters = inspect.signature(self.get(name)).parameters
        return {key: value for key, value in offered.items() if key in parameters}

    def create(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """The component `name` made with what the builder supplies and what the config sets."""
        return self.get(name)(*args, **kwargs)


class AttentionRegistry(Registry):
    """The attentions that `gpca` knows: `gpca.register_attention` is enough, and there is no second list."""

    def register(self, name: str, summary: str) -> Callable[[T], T]:
        raise TypeError(f"register the attention {name!r} with gpca.register_attention")

    def entries(self) -> Mapping[str, Entry]:
        import gpca

        return {
            name: Entry(name, summary, gpca.attention_class(name))
            for name, summary in gpca.available_attentions().items()
        }

    def restore(self, entries: Mapping[str, Entry]) -> None:
        from gpca.registry import forget_attention

        for name in [name for name in self.entries() if name not in entries]:
            forget_attention(name)


class JoinedRegistry(Registry):
    """The components of several kinds together; each is registered with its own kind."""

    def __init__(self, kind: str, *members: Registry) -> None:
        super().__init__(kind, ())
        self._members = members

    def register(self, name: str, summary: str) -> Callable[[T], T]:
        raise TypeError(f"register {name!r} as a {' or as an '.join(m.kind for m in self._members)}")

    def entries(self) -> Mapping[str, Entry]:
        return {name: entry for member in self._members for name, entry in member.entries().items()}

    def options(self, name: str) -> dict[str, Option]:
        owners = [member for member in self._members if name in member.entries()]
        if len(owners) > 1:
            raise ConfigError(f"{name!r} is the name of a {' and of an '.join(m.kind for m in owners)}")
        return owners[0].options(name) if owners else super().options(name)


BACKBONES = Registry("backbone", ("wsol.models.backbones",), supplied=("weights",))
DROPS = Registry("drop", ("wsol.models.drops",), supplied=("channels",))
HEADS = Registry(
    "head",
    ("wsol.models.heads",),
    supplied=("outline", "classes", "hierarchy", "make_attention"),
    required=("forward", "loss", "maps_for"),
)
ATTENTIONS = AttentionRegistry("attention", ("gpca",), supplied=("channels", "device", "dtype"))
TAPS = JoinedRegistry("tap", DROPS, ATTENTIONS)
NETWORKS = Registry("network", ("wsol.models.networks",), supplied=("classes",))
MAP_METHODS = Registry("map method", ("wsol.models.classifier.methods",), required=("maps",))
DATASETS = Registry("dataset", ("wsol.data.sets",), required=("detect", "read"))
OPTIMIZERS = Registry("optimizer", ("wsol.training.optimizer",), supplied=("groups", "lr"))
SCHEDULES = Registry("schedule", ("wsol.training.schedules",), supplied=("total",))
TRANSFORMS = Registry("transform", ("wsol.training.transforms",), supplied=("mean",), required=("transform",))
PROTOCOLS = Registry("protocol", ("wsol.scoring.protocols",))
METRICS = Registry("metric", ("wsol.scoring.metrics",))

REGISTRIES: dict[str, Registry] = {
    "backbones": BACKBONES,
    "drops": DROPS,
    "heads": HEADS,
    "attentions": ATTENTIONS,
    "networks": NETWORKS,
    "map_methods": MAP_METHODS,
    "datasets": DATASETS,
    "optimizers": OPTIMIZERS,
    "schedules": SCHEDULES,
    "transforms": TRANSFORMS,
    "protocols": PROTOCOLS,
    "metrics": METRICS,
}
