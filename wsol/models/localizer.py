"""The localizer: a backbone of named stages, taps after some of them, and a head."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from torch import Tensor, nn

from wsol.config import Component, Model
from wsol.data.hierarchy import Hierarchy
from wsol.errors import ConfigError
from wsol.models.backbone import Backbone, Outline
from wsol.models.class_ranking import best_classes, rank_weights, weighted_map
from wsol.models.detached import call_detached
from wsol.models.heads.head import Head
from wsol.models.heads.targets import Targets
from wsol.models.trainable import Trainable
from wsol.models.weights import Weights
from wsol.records import LocalizerOutput

SMALLEST_MAP = 2  # cells on a side: a single cell cannot say where


class Localizer(Trainable):
    """Images in, class scores and class maps out.

    Shapes: images (N, 3, H, W), uint8 or float in [0, 1], RGB -> logits (N, classes) and maps
    (N, classes, h, w).

    Taps are what follows a stage: drop blocks, which act in training only, and attentions. `maps_for` needs
    neither a gradient nor a second pass.

    rank_weights: (k,) what the maps of an image's k best classes count in its map at test; None where the map
    is that of the class asked for. See `wsol.models.class_ranking`.
    """

    rank_weights: Tensor | None

    def __init__(
        self,
        backbone: Backbone,
        taps: Mapping[str, nn.Module],
        head: Head,
        rank_weights: Tensor | None = None,
    ) -> None:
        super().__init__(backbone.weights_report)
        self.backbone = backbone
        self.taps = nn.ModuleDict(taps)
        self.head = head
        # It comes from the config, not from training, so it is no part of a checkpoint.
        self.register_buffer("rank_weights", rank_weights, persistent=False)

    @property
    def pretrained(self) -> frozenset[str]:
        return frozenset(f"backbone.{name}" for name in self.backbone.pretrained)

    @property
    def attended(self) -> nn.Module:
        """The head. Attentions at taps weigh features, not classes, and are not listed by `masks`."""
        return self.head

    def freeze(self, stage: str) -> None:
        """Hold a stage of the backbone and all before it still; see `Backbone.freeze`."""
        self.backbone.freeze(stage)

    def set_epoch(self, epoch: float) -> None:
        self.head.epoch = epoch

    def forward(self, images: Tensor, labels: Tensor | None = None) -> LocalizerOutput:
        features = self.backbone(self.normalise(images), self.taps, self.head.reads)
        output: LocalizerOutput = self.head(features, labels, self.tail)
        return output

    def tail(self, stage: str, x: Tensor, *, taps: bool = True, detached: bool = False) -> Tensor:
        """The rest of the backbone after a stage; see `wsol.models.heads.head.Tail`."""
        if not taps:
            return self.backbone.tail(stage, x, None, detached)
        held = {name: partial(call_detached, tap) for name, tap in self.taps.items()}
        return self.backbone.tail(stage, x, held if detached else self.taps, detached)

    def loss(self, output: LocalizerOutput, targets: Targets) -> dict[str, Tensor]:
        """The head's named losses; their sum is what training minimises.

        targets: labels (N,), or weighted pairs [(weight, labels (N,)), ...].
        """
        return self.head.loss(output, targets)

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        """The maps at test for given classes: labels (N,) -> (N, h, w), labels (N, K) -> (N, K, h, w).

        With `rank_weights` it is the same map for all of them.
        """
        if self.rank_weights is None:
            return self.head.maps_for(output, labels)
        best = best_classes(output.logits, len(self.rank_weights))
        one = weighted_map(self.head.maps_for(output, best), self.rank_weights)
        shape = (*labels.shape, *one.shape[1:])
        return one.reshape(len(labels), *[1] * (labels.ndim - 1), *one.shape[1:]).expand(shape)

    @property
    def cut(self) -> float | None:
        """Where the head cuts its raw maps itself; None where thresholds do."""
        return self.head.cut

    @property
    def knows_classes(self) -> bool:
        """Whether it tells classes apart."""
        return self.head.knows_classes


def build_localizer(
    model: Model, classes: int, hierarchy: Hierarchy | None = None, image_size: int | None = None
) -> Localizer:
    """The localizer that a config describes.

    classes: how many; hierarchy: the tree over them, for the heads that need one.
    image_size: side of the images it will see, to refuse early what is too small.

    Raises:
        ConfigError: an unknown name or option, an impossible combination, an input too small.
        CheckpointError: the weights cannot be loaded.
    """
    if classes < 2 and model.head.knows_classes:
        raise ConfigError(f"a localizer needs at least 2 classes to tell apart, got {classes}")
    backbone: Backbone = _create(
        "backbone", model.backbone, weights=Weights(model.weights, model.allow_missing)
    )
    if image_size is not None:
        _check_input_size(backbone, image_size)

    taps = _build_taps(model, backbone.outline)
    head: Head = _create(
        "head",
        model.head,
        outline=backbone.outline,
        classes=classes,
        hierarchy=hierarchy,
        make_attention=lambda channels: _create("attention", model.attention, channels=channels),
    )
    weights = rank_weights(model.head.map_kind, classes, model.head.topk)
    return Localizer(backbone, taps, head, weights)


def _build_taps(model: Model, outline: Outline) -> dict[str, nn.Module]:
    """What follows each stage: one module, or several one after the other; nothing where none is wanted."""
    listed: list[tuple[str, str, Component, str | tuple[str, ...]]] = [
        ("drop", "placement", model.drop, model.drop.placement),
        *((f"taps[{i}]", "after", tap, tap.after) for i, tap in enumerate(model.taps)),
    ]
    wanted = []
    for section, key, component, placement in listed:
        try:
            wanted.append((section, component, outline.place(placement)))
        except ValueError as error:
            raise ConfigError(f"model.{section}.{key}: {error}") from None
    modules: dict[str, nn.Module] = {}
    for stage, feature in outline.features.items():
        offered = {"channels": feature.channels, "gamma": outline.gamma}
        made = [
            _create(section, component, **component.registry.taken(component.name, offered))
            for section, component, places in wanted
            if stage in places
        ]
        made = [module for module in made if not isinstance(module, nn.Identity)]  # the drop block `none`
        if made:
            modules[stage] = made[0] if len(made) == 1 else nn.Sequential(*made)
    return modules


def _create(section: str, component: Component, **supplied: Any) -> Any:
    """A component with what the builder supplies; what its config sets comes on top."""
    try:
        return component.registry.create(component.name, **{**supplied, **component.options})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"model.{section}: {component.name}: {error}") from error


def _check_input_size(backbone: Backbone, size: int) -> None:
    _, height, width = list(backbone.shapes(size, size).values())[-1]
    if min(height, width) < SMALLEST_MAP:
        raise ConfigError(
            f"images of {size}x{size} are too small for this backbone: they leave a map of {height}x{width}; "
            f"use at least {SMALLEST_MAP * size // max(height, 1)}"
        )
