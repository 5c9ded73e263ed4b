"""Attention inside any network: `insert_attention(network, "gpca", after="layer?.?.bn3")`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx, nn
from torch.utils.hooks import RemovableHandle

from gpca.base import Attention
from gpca.cost import multiply_adds
from gpca.places import find_modules, maps_after, one_image, parts_of, patterns_of, run
from gpca.registry import build_attention

CHILD = "attention"  # how the attention is called inside the module that it follows


class Place(NamedTuple):
    """Where attentions were put: the module that they follow, their name in it, and the hook."""

    module: nn.Module
    child: str
    hook: RemovableHandle


class Insertion:
    """The attentions that one call of `insert_attention` has put into a model.

    attentions: by their names in the model, such as "layer1.0.bn3.attention".
    """

    def __init__(
        self, model: nn.Module, attentions: Mapping[str, Attention], places: Sequence[Place], example: Any
    ) -> None:
        self.model = model
        self.attentions = dict(attentions)
        self._places = list(places)
        self._example = example

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attentions in the model."""
        return tuple(self.attentions)

    @property
    def parameters(self) -> int:
        """How many parameters the attentions have."""
        return sum(p.numel() for attention in self.attentions.values() for p in attention.parameters())

    @property
    def masks(self) -> dict[str, Tensor]:
        """The masks (N, C) of the last forward pass, of the attentions that have one."""
        return {name: a.mask for name, a in self.attentions.items() if a.mask is not None}

    @property
    def maps(self) -> dict[str, Tensor]:
        """The maps (N, H, W) of the last forward pass, of the attentions that have one."""
        return {name: a.map for name, a in self.attentions.items() if a.map is not None}

    def multiply_adds(self, example: Any = None) -> int:
        """Multiply-adds that the attentions add to one forward pass at test, for an input.

        The model runs once on the input, to see which maps reach each attention. Then an attention runs by
        itself on a random map of each shape, and `gpca.multiply_adds` counts.

        Args:
            example: the input, as `insert_attention` takes it; None for the one that it had.
        """
        seen: list[Tensor] = []
        by_shape: dict[torch.Size, Attention] = {}  # all have the same options: the same shape costs the same

        def note(attention: Attention, inputs: tuple[Tensor, ...]) -> None:
            seen.append(inputs[0])
            by_shape[inputs[0].shape] = attention

        hooks = [attention.register_forward_pre_hook(note) for attention in self.attentions.values()]
        try:
            run(self.model, self._example if example is None else example)
        finally:
            for hook in hooks:
                hook.remove()
        example_of = {x.shape: x for x in seen}
        counts = {
            shape: multiply_adds(attention, torch.rand_like(example_of[shape]))
            for shape, attention in by_shape.items()
        }
        return sum(counts[x.shape] for x in seen)

    def remove(self) -> None:
        """Take the attentions out: the model is what it was before. A second call does nothing."""
        for place in self._places:
            place.hook.remove()
            delattr(place.module, place.child)
        self._places = []
        self.attentions = {}

    def __repr__(self) -> str:
        kinds = ", ".join(sorted({type(a).__name__ for a in self.attentions.values()}))
        number = len(self.attentions)
        what = f"{number} {kinds} attention{'' if number == 1 else 's'}" if number else "no attentions"
        return f"Insertion: {what}, {self.parameters:,} parameters"


def insert_attention(
    model: nn.Module, name: str, after: str | Sequence[str], *, example: Any = None, **options: Any
) -> Insertion:
    """Put an attention after modules of a network, without renaming anything in it.

    Each attention becomes a child, called `attention`, of the module that it follows, and a forward hook
    applies it to that module's output. So a checkpoint of the plain network loads as before: the keys of the
    attentions alone are missing (`load_state_dict(state, strict=False)`). deepcopy, pickle, `torch.export`,
    `torch.fx`, `torch.compile` and DistributedDataParallel work as with any submodule. `torch.fx` leaves out
    the hooks of the very module that it is given: put one that is followed into an `nn.Sequential` first.

    Where a module puts out several maps, in a dict, list or tuple, each map gets an attention of its own. An
    `nn.Sequential` runs all its children, so the attention goes into the last of them.

    >>> from torch import nn
    >>> network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    >>> inserted = insert_attention(network, "se", after="1")
    >>> inserted.names, inserted.parameters, inserted.multiply_adds()
    (('1.attention',), 32, 32)

    Args:
        model: any network. It is changed in place.
        name: of the attention; `available_attentions` lists them.
        after: names of modules as `named_modules` gives them, or patterns: `*` stands for any text, dots too,
            `?` for one character, `[34]` for one of these characters.
        example: input for one run of the model in eval mode, which shows the shapes of the maps: one
            argument, or a tuple of all. One image of 3x224x224 unless given.
        options: of the attention.

    Raises:
        ValueError: there is no pattern, or one matches no module; the model does not take one image of
            3x224x224 and there is no `example`; a module puts out no map (N, C, H, W), or does not run; the
            attention does not work on the map; no attention has this name, or an option has a bad value.
        TypeError: the attention does not take one of the options.
    """
    modules = find_modules(model, patterns_of(after))
    given = example is not None
    example = example if given else one_image(model)
    try:
        maps = maps_after(model, modules, example)
    except (RuntimeError, TypeError, AssertionError) as error:
        if given:
            raise
        what = type(model).__name__
        raise ValueError(f"{what} does not run on one image of 3x224x224; give an `example`") from error
    # All are built before the first is put in: an error leaves the model as it was.
    built = {host: {key: _build(name, host, x, options) for key, x in maps[host].items()} for host in modules}

    places = []
    attentions: dict[str, Attention] = {}
    for host, module in modules.items():
        child = _free_name(module)
        single = built[host].get("")
        added = nn.ModuleDict(built[host]) if single is None else single
        module.add_module(child, added.train(module.training))
        places.append(Place(module, child, module.register_forward_hook(_Apply(added))))
        for key, attention in built[host].items():
            attentions[f"{host}.{child}.{key}".removesuffix(".")] = attention
    return Insertion(model, attentions, places, example)


class _Apply:
    """The forward hook. It is an object, so that a copy or a pickle of the model holds its own attention."""

    def __init__(self, attention: nn.Module) -> None:
        self.attention = attention

    def __call__(self, module: nn.Module, inputs: Any, output: Any) -> Any:
        if not isinstance(self.attention, nn.ModuleDict):
            return _call(self.attention, output)
        attended = [_call(self.attention[key], x) for key, x in parts_of(output)]
        if isinstance(output, Mapping):
            return type(output)(zip(output, attended, strict=True))  # type: ignore[call-arg]
        make: Callable[[list[Any]], Any] = getattr(output, "_make", type(output))  # a named tuple has _make
        return make(attended)


def _call(attention: nn.Module, x: Any) -> Any:
    if isinstance(x, fx.Proxy):  # torch.fx is tracing: the attention stays one call and is not traced itself
        tracer: Any = x.tracer
        return tracer.create_proxy("call_module", tracer.path_of_module(attention), (x,), {})
    return attention(x)


def _build(name: str, host: str, x: Tensor, options: Mapping[str, Any]) -> Attention:
    """The attention for the map x, which comes after the module `host`."""
    try:
        attention = build_attention(name, x.shape[1], x.device, x.dtype, **options)
        attention.check_input(x)
    except ValueError as error:
        raise ValueError(f"after {host!r}: {error}") from None
    return attention


def _free_name(module: nn.Module) -> str:
    number, name = 1, CHILD
    while hasattr(module, name):
        number += 1
        name = f"{CHILD}_{number}"
    return name
