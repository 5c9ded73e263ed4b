"""`wsol.attention_costs`: what every attention costs in one network, beside the paper's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpca import multiply_adds
from wsol.errors import ConfigError
from wsol.registry import ATTENTIONS, suggest
from wsol.scoring.published import PublishedComplexity, published_complexity
from wsol.text_table import html_table, text_table

#: Options that get a row of their own, as in the paper.
VARIANTS: dict[str, tuple[dict[str, str], ...]] = {"gpca": ({}, {"variant": "local"}, {"variant": "mha"})}

HEAD = (
    *("attention", "parameters", "multiply-adds", "training step", "inference step"),
    *("paper: parameters", "complexity", "training", "inference"),
)


@dataclass(frozen=True)
class AttentionCost:
    """One attention: what it adds to the network, the time of a step with it, and the paper's row.

    parameters, multiply_adds: added, the latter for one image at test.
    training, inference: seconds of a step of the whole network.
    """

    attention: str
    parameters: int
    multiply_adds: int
    training: float
    inference: float
    paper: PublishedComplexity | None

    def cells(self) -> tuple[str, ...]:
        ours = (
            self.attention,
            f"{self.parameters:,}",
            f"{self.multiply_adds / 1e6:,.1f} M",
            f"{self.training * 1e3:,.0f} ms",
            f"{self.inference * 1e3:,.0f} ms",
        )
        if self.paper is None:
            return (*ours, "", "", "", "")
        paper = self.paper
        times = (f"{paper.training_seconds:.2f} s", f"{paper.inference_seconds:.2f} s")
        return (*ours, paper.parameters, paper.complexity, *times)


@dataclass(frozen=True)
class AttentionCosts:
    """The table: one row for each attention; prints and shows itself."""

    rows: tuple[AttentionCost, ...]
    batch_size: int
    network_parameters: int
    network_multiply_adds: int

    @property
    def note(self) -> str:
        return (
            f"ResNet50 for 32x32 images ({self.network_parameters / 1e6:.1f} M parameters, "
            f"{self.network_multiply_adds / 1e9:.2f} G multiply-adds for one image), the attention after the "
            f"last batch norm of each of its 16 blocks. Steps: batch of {self.batch_size}, on the CPU of "
            "this machine. The paper's times: seconds per epoch, CIFAR-100, batch of 256, GTX 1080 Ti."
        )

    def __str__(self) -> str:
        return f"{text_table([HEAD, *(row.cells() for row in self.rows)])}\n\n{self.note}"

    def _repr_html_(self) -> str:
        return html_table([HEAD, *(row.cells() for row in self.rows)], self.note)


def attention_costs(
    attentions: Sequence[str] | None = None, *, batch_size: int = 2, progress: bool = False
) -> AttentionCosts:
    """What attentions cost: parameters, multiply-adds and time, in the paper's ResNet50 for 32x32 images.

    The attention follows the last batch norm of every block. Multiply-adds are counted while the attention
    runs (see `gpca.multiply_adds`). Times are medians of a few steps on the CPU of this machine; compare them
    within one table only. With 2048 channels a step of full GPCA takes a minute on a small machine.

    Args:
        attentions: names, as `wsol list attentions` gives them; None for all of them. `identity` is the
            network without attention. `gpca` has three rows: full, local and mha.
        batch_size: images in a step.
        progress: show a bar, as the command does.

    >>> import wsol
    >>> (row,) = wsol.attention_costs(["eca"], batch_size=1).rows
    >>> row.parameters, row.paper.parameters
    (86, 'odd(log2(C)/2 + 1/2)')
    """
    import torch
    from tqdm import tqdm

    from wsol.models.attention_cost import SIDE, measure_attention, small_image_resnet50

    known = list(ATTENTIONS.entries())
    names = known if attentions is None else list(attentions)
    for name in names:
        if name not in known:
            raise ConfigError(f"unknown attention {name!r}{suggest(name, known)}")
    if batch_size < 1:
        raise ConfigError(f"the batch size must be at least 1, got {batch_size}")
    network, published = small_image_resnet50(), published_complexity()
    rows = []
    wanted = [(name, options) for name in names for options in VARIANTS.get(name, ({},))]
    for name, options in (bar := tqdm(wanted, unit="attention", leave=False, disable=not progress)):
        label = " ".join([name, *(f"{key}={value}" for key, value in options.items())])
        bar.set_description(label)
        cost = measure_attention(network, name, options, batch_size)
        rows.append(
            AttentionCost(
                label,
                cost.parameters,
                cost.multiply_adds,
                cost.training,
                cost.inference,
                published.get(label),
            )
        )
    return AttentionCosts(
        tuple(rows),
        batch_size,
        sum(p.numel() for p in network.parameters()),
        multiply_adds(network, torch.zeros(1, 3, SIDE, SIDE)),
    )
