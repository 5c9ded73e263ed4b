"""A model as a table: stages or parts, taps, shapes, parameters and multiply-adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gpca import Attention
from gpca.cost import counter
from wsol.models.heads.class_maps import ClassMaps
from wsol.models.localizer import Localizer
from wsol.models.trainable import Trainable


@dataclass(frozen=True)
class PartRow:
    """One part of a model: its output (channels, height, width) for one image, and what it costs."""

    part: str
    tap: str  # what follows it, or which attentions are in it
    output: tuple[int, ...]
    parameters: int
    multiply_adds: int

    def cells(self) -> tuple[str, ...]:
        size = " x ".join(str(n) for n in self.output)
        return self.part, self.tap, size, f"{self.parameters:,}", _millions(self.multiply_adds)


@dataclass(frozen=True)
class Summary:
    rows: tuple[PartRow, ...]
    image_size: int

    @property
    def parameters(self) -> int:
        return sum(row.parameters for row in self.rows)

    @property
    def multiply_adds(self) -> int:
        return sum(row.multiply_adds for row in self.rows)

    def __str__(self) -> str:
        header = ("part", "tap", "output", "parameters", "multiply-adds")
        side = self.image_size
        body = [
            ("image", "", f"3 x {side} x {side}", "", ""),
            *(row.cells() for row in self.rows),
            ("total", "", "", f"{self.parameters:,}", _millions(self.multiply_adds)),
        ]
        widths = [max(len(row[i]) for row in (header, *body)) for i in range(len(header))]
        lines = [_line(row, widths) for row in (header, *body)]
        rule = "-" * max(map(len, lines))
        return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1]])


def summarise(model: Trainable, image_size: int) -> Summary:
    """Run one image through the model and note what each part does.

    Every parameter is counted once: what belongs to no listed part, or to several, is in the row of the first
    part that holds it, or in the last row, `other`.

    Multiply-adds are those of one image at test, counted as `gpca.multiply_adds` says: convolutions, matrix
    products and factorisations, without elementwise operations.
    """
    shapes: dict[nn.Module, tuple[int, ...]] = {}

    def note(module: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, Tensor):
            shapes[module] = tuple(output.shape[1:])

    parts = list(_parts(model))
    hooks = [part.modules[-1].register_forward_hook(note) for part in parts if part.modules]
    was_training = model.training
    model.eval()
    try:
        image = torch.zeros(1, 3, image_size, image_size, dtype=torch.uint8, device=model.mean.device)
        with torch.no_grad(), counter() as counted:
            model(image)
    finally:
        model.train(was_training)
        for hook in hooks:
            hook.remove()
    flops = counted.get_flop_counts()
    names = {module: f"{type(model).__name__}.{name}" for name, module in model.named_modules()}
    seen: set[nn.Parameter] = set()

    def count(parameters: Iterable[nn.Parameter]) -> int:
        new = {p for p in parameters if p not in seen}
        seen.update(new)
        return sum(p.numel() for p in new)

    rows = [
        PartRow(
            part=part.label,
            tap=part.tap,
            output=shapes.get(part.modules[-1], ()) if part.modules else (),
            parameters=count(p for module in part.modules for p in module.parameters()),
            multiply_adds=sum(sum(flops.get(names[m], {}).values()) for m in part.modules) // 2,
        )
        for part in parts
    ]
    rest = count(model.parameters())
    rest_flops = counted.get_total_flops() // 2 - sum(row.multiply_adds for row in rows)
    if rest or rest_flops:
        rows.append(PartRow("other", "", (), rest, rest_flops))
    return Summary(tuple(rows), image_size)


class _Part(NamedTuple):
    label: str
    modules: Sequence[nn.Module]  # that run one after the other
    tap: str = ""


def _parts(model: Trainable) -> Iterator[_Part]:
    """The stages, the taps that have parameters, and the parts of the head; or the parts of a classifier."""
    if isinstance(model, Localizer):
        yield from _localizer_parts(model)
    else:
        for name, module in model.attended.named_children():
            inside = Counter(type(m).__name__ for m in module.modules() if isinstance(m, Attention))
            yield _Part(name, [module], ", ".join(f"{number} x {kind}" for kind, number in inside.items()))


def _localizer_parts(localizer: Localizer) -> Iterator[_Part]:
    taps = dict(localizer.taps.items())
    for step in localizer.backbone.steps:
        tap = taps.get(step.name)
        names = [] if tap is None else [_short_name(m) for m in _chain(tap)]
        yield _Part(step.name, localizer.backbone.layers(step), ", ".join(names))
        if tap is not None and any(True for _ in tap.parameters()):
            yield _Part(f"taps.{step.name}", [tap])
    for name, module in localizer.head.named_children():
        yield from _head_parts(f"head.{name}", module)


def _head_parts(name: str, module: nn.Module) -> Iterator[_Part]:
    """A module of a head: whole, unless class maps or attentions are inside it."""
    known = ClassMaps | Attention
    if isinstance(module, known) or not any(isinstance(m, known) for m in module.modules()):
        yield _Part(name, [module])
    else:
        for child_name, child in module.named_children():
            yield from _head_parts(f"{name}.{child_name}", child)


def _chain(tap: nn.Module) -> Iterable[nn.Module]:
    return tap if isinstance(tap, nn.Sequential) else [tap]


def _short_name(module: nn.Module) -> str:
    return f"{type(module).__name__}({module.extra_repr()})"


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    left = [f"{cell:<{width}}" for cell, width in zip(cells[:3], widths[:3], strict=True)]
    right = [f"{cell:>{width}}" for cell, width in zip(cells[3:], widths[3:], strict=True)]
    return "  ".join([*left, *right]).rstrip()


def _millions(count: int) -> str:
    return f"{count / 1e6:,.1f} M"
