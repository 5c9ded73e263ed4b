"""A localizer as a table: stages, taps, shapes, parameters and multiply-adds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from gpca import ChannelAttention
from wsol.models.drops.block import DropBlock
from wsol.models.heads import ClassMaps
from wsol.models.localizer import Localizer


@dataclass(frozen=True)
class Row:
    """One part of a localizer: its output (channels, height, width) for one image, and what it costs."""

    part: str
    tap: str  # the drop block after it
    output: tuple[int, ...]
    parameters: int
    multiply_adds: int

    def cells(self) -> tuple[str, ...]:
        size = " x ".join(str(n) for n in self.output)
        return self.part, self.tap, size, f"{self.parameters:,}", _millions(self.multiply_adds)


@dataclass(frozen=True)
class Summary:
    rows: tuple[Row, ...]
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


def summarise(localizer: Localizer, image_size: int) -> Summary:
    """Run one image through the localizer and note what each part does.

    Multiply-adds are those of convolutions and matrix products at test; factorisations, such as GPCA's, and
    elementwise operations are not counted.
    """
    shapes: dict[nn.Module, tuple[int, ...]] = {}

    def note(module: nn.Module, _inputs: object, output: Tensor) -> None:
        shapes[module] = tuple(output.shape[1:])

    parts = list(_parts(localizer))
    hooks = [part.module.register_forward_hook(note) for part in parts]
    was_training = localizer.training
    localizer.eval()
    try:
        image = torch.zeros(1, 3, image_size, image_size, dtype=torch.uint8, device=localizer.mean.device)
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            localizer(image)
    finally:
        localizer.train(was_training)
        for hook in hooks:
            hook.remove()
    flops = counter.get_flop_counts()
    rows = [
        Row(
            part=part.label,
            tap=part.tap,
            output=shapes[part.module],
            parameters=sum(p.numel() for p in part.module.parameters()),
            multiply_adds=sum(flops.get(f"Localizer.{part.path}", {}).values()) // 2,
        )
        for part in parts
    ]
    return Summary(tuple(rows), image_size)


class _Part(NamedTuple):
    path: str  # name of the module in the localizer
    label: str
    module: nn.Module
    tap: str = ""


def _parts(localizer: Localizer) -> Iterator[_Part]:
    """The stages, then the head's class maps and attentions: together they hold every parameter."""
    taps = dict(localizer.taps.items())
    for name, stage in localizer.backbone:
        tap = taps.get(name)
        text = f"{type(tap).__name__}({tap.extra_repr()})" if isinstance(tap, DropBlock) else ""
        yield _Part(f"backbone.stages.{name}", name, stage, text)
    for name, module in localizer.head.named_modules(prefix="head"):
        if isinstance(module, ClassMaps | ChannelAttention):
            yield _Part(name, name, module)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    left = [f"{cell:<{width}}" for cell, width in zip(cells[:3], widths[:3], strict=True)]
    right = [f"{cell:>{width}}" for cell, width in zip(cells[3:], widths[3:], strict=True)]
    return "  ".join([*left, *right]).rstrip()


def _millions(count: int) -> str:
    return f"{count / 1e6:,.1f} M"
