"""A backbone: a network cut into ordered named stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from wsol.errors import ConfigError
from wsol.models.weights import Loaded
from wsol.registry import suggest

PROBE_SIZE = 256  # a multiple of every stride, so that the map's size tells the stride


@dataclass(frozen=True)
class Feature:
    """The output of a stage: its channels, and how many input pixels lie between two cells of the map."""

    name: str
    channels: int
    stride: int


class Backbone(nn.Module):
    """Stages that follow one another, and what the parts that attach to them need to know.

    Args:
        stages: modules (N, C, H, W) -> (N, C', H', W'), by name, in the order of the flow.
        weights: what was loaded into the network before it was cut.
        placements: for each named placement the stages that a drop block follows.
        pyramid: the stages that hierarchical heads read, from coarse labels to fine; ends in the last one.
        gamma: threshold that drop blocks use on this network unless told otherwise.
        probe_size: side of an input that every stage can take, used to find channels and strides.

    `features` tells channels and stride of every stage; they are measured, not declared.
    """

    def __init__(
        self,
        stages: Mapping[str, nn.Module],
        weights: Loaded,
        placements: Mapping[str, tuple[str, ...]],
        pyramid: tuple[str, ...],
        gamma: float,
        probe_size: int = PROBE_SIZE,
    ) -> None:
        super().__init__()
        self.stages = nn.ModuleDict(stages)
        self.weights_report = weights.report
        held = {id(p) for p in weights.parameters}
        self.pretrained = frozenset(name for name, p in self.named_parameters() if id(p) in held)
        self.gamma = gamma
        shapes = self.shapes(probe_size, probe_size)
        self.features = {
            name: Feature(name, channels, round(probe_size / height))
            for name, (channels, height, _) in shapes.items()
        }
        self.pyramid = tuple(self.features[name] for name in pyramid)
        self.placements = dict(placements)

    def __iter__(self) -> Iterator[tuple[str, nn.Module]]:
        return iter(self.stages.items())

    def place(self, placement: str | tuple[str, ...]) -> tuple[str, ...]:
        """The stages that a placement names: one of the backbone's own, or a list of stages.

        Raises:
            ConfigError: a name that is no stage.
        """
        if isinstance(placement, str):
            return self.placements[placement]
        for name in placement:
            if name not in self.stages:
                raise ConfigError(f"model.drop.placement: no stage {name!r}{suggest(name, self.stages)}")
        return placement

    def shapes(self, height: int, width: int) -> dict[str, tuple[int, int, int]]:
        """(channels, height, width) after each stage for an input of that size; nothing is computed.

        Raises:
            ConfigError: the network cannot take such an input, or a stage does not put out feature maps.
        """
        was_training = self.training
        self.eval()
        x = torch.empty(1, 3, height, width, device="meta")
        shapes: dict[str, tuple[int, int, int]] = {}
        try:
            for name, stage in self:
                x = _on_meta(stage, x)
                if x.ndim != 4:
                    raise ConfigError(
                        f"model.backbone: stage {name!r} puts out {tuple(x.shape)}, not maps (N, C, H, W): "
                        "a localizer needs a convolutional backbone"
                    )
                shapes[name] = (x.shape[1], x.shape[2], x.shape[3])
        except RuntimeError as error:
            raise ConfigError(
                f"an input of {height}x{width} is too small for this backbone, stage {name!r}: "
                f"{str(error).splitlines()[0]}"
            ) from None
        finally:
            self.train(was_training)
        return shapes


def _on_meta(module: nn.Module, x: Tensor) -> Tensor:
    """The output of `module` for shapes alone."""
    state = {name: t.to("meta") for name, t in (*module.named_parameters(), *module.named_buffers())}
    result: Tensor = functional_call(module, state, (x,))
    return result
