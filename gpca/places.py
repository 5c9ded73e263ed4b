"""Where an attention can go in a network: the modules that patterns name, and the maps that they put out."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from gpca.base import Attention
from gpca.eval_mode import in_eval


def patterns_of(after: object) -> list[str]:
    """One pattern or several, as a list; ValueError where they are something else."""
    patterns: list[Any] = (
        list(after) if isinstance(after, Sequence) and not isinstance(after, str) else [after]
    )
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise ValueError(f"`after` must be the name of a module, or several, got {pattern!r}")
    return patterns


def find_modules(model: nn.Module, patterns: Sequence[str]) -> dict[str, nn.Module]:
    """The modules that match, by name; for an `nn.Sequential` its last child.

    Raises:
        ValueError: no pattern; a pattern matches none, or a container that cannot hold an attention.
    """
    if not patterns:
        raise ValueError("`after` names no module; see model.named_modules()")
    inside = {part for a in model.modules() if isinstance(a, Attention) for part in a.modules()}
    named = {name: module for name, module in model.named_modules() if name and module not in inside}
    found: dict[str, nn.Module] = {}
    for pattern in patterns:
        matching = [name for name in named if fnmatchcase(name, pattern)]
        if not matching:
            near = difflib.get_close_matches(pattern, named, n=3, cutoff=0.4)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "see model.named_modules()"
            raise ValueError(f"no module of {type(model).__name__} matches {pattern!r}; {hint}")
        found.update(_last_child(name, named[name]) for name in matching)
    return found


def _last_child(name: str, module: nn.Module) -> tuple[str, nn.Module]:
    while isinstance(module, nn.Sequential) and len(module):
        last, module = list(module.named_children())[-1]
        name = f"{name}.{last}"
    if isinstance(module, nn.Sequential | nn.ModuleList | nn.ModuleDict):
        raise ValueError(
            f"{name!r} is a {type(module).__name__}, which runs all its children, so it cannot hold an "
            "attention; name the child after which the attention should come"
        )
    return name, module


def one_image(model: nn.Module) -> Tensor:
    """An image of 3x224x224 where the model is, in its dtype."""
    first = next((p for p in model.parameters() if p.is_floating_point()), torch.zeros(0))
    return torch.zeros(1, 3, 224, 224, device=first.device, dtype=first.dtype)


def run(model: nn.Module, example: Any) -> None:
    """One forward pass at test; a tuple holds all the arguments."""
    with in_eval(model), torch.no_grad():
        model(*example) if isinstance(example, tuple) else model(example)


def maps_after(
    model: nn.Module, modules: Mapping[str, nn.Module], example: Any
) -> dict[str, dict[str, Tensor]]:
    """The maps that each module puts out in one run of the model: by module, then by key as in `maps_in`.

    Raises:
        ValueError: a module puts out no map, does not run, or runs on maps of different channels.
    """
    seen: dict[str, dict[str, Tensor]] = {}
    square = _is_square(example)

    def note(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            maps = maps_in(output, name)
            if square:
                _refuse_channels_last(maps, name)
            first = seen.setdefault(name, maps)
            if _channels(maps) != _channels(first):
                raise ValueError(
                    f"{name!r} runs more than once, on maps of different channels ({_channels(first)} and "
                    f"{_channels(maps)}), which one attention cannot weigh; name another module"
                )

        return hook

    hooks = [module.register_forward_hook(note(name)) for name, module in modules.items()]
    try:
        run(model, example)
    finally:
        for hook in hooks:
            hook.remove()
    silent = [name for name in modules if name not in seen]
    if silent:
        raise ValueError(
            f"{silent[0]!r} does not run in eval mode, so its map is unknown; name another module"
        )
    return seen


def _is_square(example: Any) -> bool:
    """Whether the model gets one square image, or a batch of them."""
    image = example[0] if isinstance(example, tuple) and example else example
    return isinstance(image, Tensor) and image.ndim == 4 and image.shape[2] == image.shape[3]


def _refuse_channels_last(maps: Mapping[str, Tensor], name: str) -> None:
    """Of a square image all maps (N, C, H, W) are square, so (N, H, H, C) can be told from them."""
    for x in maps.values():
        if x.shape[1] == x.shape[2] != x.shape[3]:
            raise ValueError(
                f"{name!r} puts out the shape {tuple(x.shape)}, with the channels last; an attention needs "
                "a map (N, C, H, W): name a module that puts out one"
            )


def _channels(maps: Mapping[str, Tensor]) -> str:
    return ", ".join(str(x.shape[1]) for x in maps.values())


def maps_in(output: Any, name: str) -> dict[str, Tensor]:
    """The maps in the output of the module `name`: by key, or under "" where the output is one map.

    Raises:
        ValueError: something in it is no map (N, C, H, W).
    """
    maps = dict(parts_of(output)) if isinstance(output, Mapping | list | tuple) else {"": output}
    for x in maps.values():
        if not (isinstance(x, Tensor) and x.ndim == 4 and x.is_floating_point()):
            what = f"the shape {tuple(x.shape)}" if isinstance(x, Tensor) else f"a {type(x).__name__}"
            raise ValueError(f"{name!r} puts out {what}, not a map (N, C, H, W) to put an attention after")
    if not maps:
        raise ValueError(f"{name!r} puts out nothing to put an attention after")
    return maps


def parts_of(output: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a dict, list or tuple with their keys as the names of modules, which have no dots."""
    pairs: Iterable[tuple[Any, Any]] = output.items() if isinstance(output, Mapping) else enumerate(output)
    return ((str(key).replace(".", "_"), x) for key, x in pairs)
