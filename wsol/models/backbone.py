"""A backbone: a network cut into ordered named stages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.func import functional_call

from wsol.errors import ConfigError
from wsol.models.detached import call_detached
from wsol.models.weights import Loaded
from wsol.registry import suggest

PROBE_SIZE = 256  # a multiple of every stride, so that the map's size tells the stride

Taps = Mapping[str, Callable[[Tensor], Tensor]] | nn.ModuleDict


@dataclass(frozen=True)
class Feature:
    """The output of a stage: its channels, and how many input pixels lie between two cells of the map."""

    name: str
    channels: int
    stride: int


@dataclass(frozen=True)
class Outline:
    """What heads and taps may know of a backbone.

    features: the output of every stage, in the order of the flow.
    pyramid: the stages that hierarchical heads read, from coarse labels to fine; ends in the last one.
    placements: lists of stages that have a name, such as `paper`.
    gamma: threshold that drop blocks use on this network unless told otherwise.
    published: what the authors of a method set on this network, by the method's name: {"bas": {"beta": 1.5}}.
    """

    features: Mapping[str, Feature]
    pyramid: tuple[Feature, ...]
    placements: Mapping[str, tuple[str, ...]]
    gamma: float
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def last(self) -> Feature:
        """The output of the whole backbone."""
        return self.pyramid[-1]

    def find(self, stage: str) -> Feature:
        """The output of one stage.

        Raises:
            ValueError: no such stage; the near names are in the message.
        """
        if stage not in self.features:
            raise ValueError(f"no stage {stage!r}{suggest(stage, self.features)}")
        return self.features[stage]

    def place(self, placement: str | Sequence[str]) -> tuple[str, ...]:
        """The stages that are meant by a placement's name, by one stage's name, or by a list of stages.

        Raises:
            ValueError: a name that is neither.
        """
        if isinstance(placement, str):
            if placement in self.placements:
                return self.placements[placement]
            if placement not in self.features:
                known = (*self.placements, *self.features)
                raise ValueError(f"no placement or stage {placement!r}{suggest(placement, known)}")
            return (placement,)
        return tuple(self.find(name).name for name in placement)

    def place_exactly(self, number: int, placement: str | Sequence[str]) -> tuple[Feature, ...]:
        """The outputs of so many stages, for heads that read at named places.

        Raises:
            ValueError: an unknown name, or another number of stages.
        """
        stages = self.place(placement)
        if len(stages) != number:
            raise ValueError(f"needs {number} of the stages, got {len(stages)} ({', '.join(stages)})")
        return tuple(self.features[stage] for stage in stages)


class Step(NamedTuple):
    """A part of the flow: a whole stage, or some consecutive layers of one."""

    name: str
    stage: str
    layers: slice | None = None


class Backbone(nn.Module):
    """Stages that follow one another, and what the parts that attach to them need to know.

    Args:
        stages: modules (N, C, H, W) -> (N, C', H', W'), by name, in the order of the flow.
        weights: what was loaded into the network before it was cut.
        placements: named lists of stages that drop blocks or heads ask for.
        pyramid: the stages that hierarchical heads read, from coarse labels to fine; ends in the last one.
        gamma: threshold that drop blocks use on this network unless told otherwise.
        published: what the authors of a method set on this network, by the method's name.
        cuts: points inside a stage that count as stages of their own: the name of the point, the stage (an
            `nn.Sequential`) and how many of its layers come before the point. The tensors keep the names
            that they have in the whole stage, so checkpoints do not depend on cuts.
        probe_size: side of an input that every stage can take, used to find channels and strides.

    `outline` tells channels and stride of every stage; they are measured, not declared.

    A network that is not a chain of stages (a transformer) overrides `forward`; nothing else runs stages.
    """

    def __init__(
        self,
        stages: Mapping[str, nn.Module],
        weights: Loaded,
        placements: Mapping[str, tuple[str, ...]],
        pyramid: tuple[str, ...],
        gamma: float,
        published: Mapping[str, Mapping[str, float]] | None = None,
        cuts: Mapping[str, tuple[str, int]] | None = None,
        probe_size: int = PROBE_SIZE,
    ) -> None:
        super().__init__()
        self.stages = nn.ModuleDict(stages)
        self.steps = tuple(_cut(stages, cuts or {}))
        self.frozen: tuple[Step, ...] = ()
        self.weights_report = weights.report
        held = {id(p) for p in weights.parameters}
        self.pretrained = frozenset(name for name, p in self.named_parameters() if id(p) in held)
        shapes = self.shapes(probe_size, probe_size)
        features = {
            name: Feature(name, channels, round(probe_size / height))
            for name, (channels, height, _) in shapes.items()
        }
        ends = tuple(features[name] for name in pyramid)
        self.outline = Outline(features, ends, dict(placements), gamma, dict(published or {}))

    def forward(
        self, x: Tensor, taps: Taps | None = None, reads: Collection[str] = (), after: str | None = None
    ) -> dict[str, Tensor]:
        """Run the stages, each with its tap, and return the outputs of those in `reads` by name.

        x: the normalised images (N, 3, H, W); or, where `after` names a stage, the output of that stage, and
            then only the stages behind it run.
        taps: what follows a stage, by the stage's name.
        """
        features: dict[str, Tensor] = {}
        running = after is None
        for step in self.steps:
            if running:
                for layer in self.layers(step):
                    x = layer(x)
                if taps is not None and step.name in taps:
                    x = taps[step.name](x)
                if step.name in reads:
                    features[step.name] = x
            running = running or step.name == after
        return features

    def layers(self, step: Step) -> Sequence[nn.Module]:
        """The modules that a step runs one after the other."""
        stage = self.stages[step.stage]
        return [stage] if step.layers is None else list(stage.children())[step.layers]

    def freeze(self, stage: str) -> None:
        """Hold this stage and all before it still: no gradients, and batch norm with its running statistics.

        They stay in eval mode when the backbone is put into train mode. Taps are no part of a stage.

        Raises:
            ValueError: no such stage; the near names are in the message.
        """
        self.outline.find(stage)
        last = [step.name for step in self.steps].index(stage)
        self.frozen = self.steps[: last + 1]
        for step in self.frozen:
            for layer in self.layers(step):
                layer.requires_grad_(False)
        self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        for step in self.frozen:
            for layer in self.layers(step):
                layer.eval()
        return self

    def tail(self, stage: str, x: Tensor, taps: Taps | None = None, detached: bool = False) -> Tensor:
        """The output of the last stage from the output x of a stage before it.

        detached: see `wsol.models.detached`; the caller detaches the taps.
        """
        last = self.outline.last.name
        self.outline.find(stage)
        if stage == last:
            return x
        run = call_detached if detached else nn.Module.__call__
        features: dict[str, Tensor] = run(self, x, taps, (last,), stage)
        return features[last]

    def shapes(self, height: int, width: int) -> dict[str, tuple[int, int, int]]:
        """(channels, height, width) after each stage for an input of that size; nothing is computed.

        Raises:
            ConfigError: the network cannot take such an input, or a stage does not put out feature maps.
        """
        shapes: dict[str, tuple[int, int, int]] = {}

        def note(name: str) -> Callable[[Tensor], Tensor]:
            def tap(x: Tensor) -> Tensor:
                if x.ndim != 4:
                    raise ConfigError(
                        f"model.backbone: stage {name!r} puts out {tuple(x.shape)}, not maps (N, C, H, W): "
                        "a localizer needs a convolutional backbone"
                    )
                shapes[name] = (x.shape[1], x.shape[2], x.shape[3])
                return x

            return tap

        was_training = self.training
        self.eval()
        names = [step.name for step in self.steps]
        tensors = (*self.named_parameters(), *self.named_buffers())
        x = torch.empty(1, 3, height, width, device="meta")
        try:
            functional_call(self, {n: t.to("meta") for n, t in tensors}, (x, {n: note(n) for n in names}))
        except RuntimeError as error:
            raise ConfigError(
                f"an input of {height}x{width} is too small for this backbone, stage "
                f"{names[len(shapes)]!r}: {str(error).splitlines()[0]}"
            ) from None
        finally:
            self.train(was_training)
        return shapes


def _cut(stages: Mapping[str, nn.Module], cuts: Mapping[str, tuple[str, int]]) -> list[Step]:
    """The steps of the flow: the stages, divided at the points inside them."""
    steps = []
    for name in stages:
        start = 0
        for point, (stage, stop) in cuts.items():
            if stage == name:
                steps.append(Step(point, name, slice(start, stop)))
                start = stop
        steps.append(Step(name, name, slice(start, None) if start else None))
    return steps
