"""A localizer as a table: stages, taps, shapes, parameters and multiply-adds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from gpca import ChannelAttention
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
    parts = dict(_parts(localizer))
    outputs: dict[str, tuple[int, ...]] = {}

    def note(name: str) -> None:
        def hook(_module: nn.Module, _inputs: object, output: Tensor) -> None:
            outputs[name] = tuple(output.shape[1:])

        hooks.append(parts[name].register_forward_hook(hook))

    hooks: list[torch.utils.hooks.RemovableHandle] = []
    was_training = localizer.training
    localizer.eval()
    try:
        for name in parts:
            note(name)
        image = torch.zeros(1, 3, image_size, image_size, dtype=torch.uint8, device=localizer.mean.device)
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            localizer(image)
    finally:
        localizer.train(was_training)
        for handle in hooks:
            handle.remove()
    counts = counter.get_flop_counts()
    rows = []
    for name, module in parts.items():
        stage = name.rpartition(".")[2]
        tap = localizer.taps[stage] if name.startswith("backbone.") and stage in localizer.taps else None
        rows.append(
            Row(
                part=stage if name.startswith("backbone.") else name,
                tap=f"{type(tap).__name__}({tap.extra_repr()})" if tap is not None else "",
                output=outputs[name],
                parameters=sum(p.numel() for p in module.parameters()),
                multiply_adds=sum(counts.get(f"Localizer.{name}", {}).values()) // 2,
            )
        )
    return Summary(tuple(rows), image_size)


def _parts(localizer: Localizer) -> Iterator[tuple[str, nn.Module]]:
    """The stages, then the head's class maps and attentions: together they hold every parameter."""
    for name, stage in localizer.backbone:
        yield f"backbone.stages.{name}", stage
    for name, module in localizer.head.named_modules(prefix="head"):
        if isinstance(module, ClassMaps | ChannelAttention):
            yield name, module


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    left = [f"{cell:<{width}}" for cell, width in zip(cells[:3], widths[:3], strict=True)]
    right = [f"{cell:>{width}}" for cell, width in zip(cells[3:], widths[3:], strict=True)]
    return "  ".join([*left, *right]).rstrip()


def _millions(count: int) -> str:
    return f"{count / 1e6:,.1f} M"
