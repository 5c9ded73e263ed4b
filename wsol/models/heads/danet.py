"""DANet's head: several levels of labels, several maps per class, and a loss that drives those apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wsol.data.hierarchy import Hierarchy
from wsol.models.backbone import Outline
from wsol.models.heads.class_maps import ClassMaps, select_maps
from wsol.models.heads.head import Head, MakeAttention, Tail
from wsol.models.heads.targets import Targets, cross_entropy, relabel, weighted
from wsol.models.randomness import RandomModule
from wsol.records import LocalizerOutput
from wsol.registry import HEADS

LEVEL_WEIGHT = 0.5  # of each level's cross-entropy


@HEADS.register("danet", "divergent activation over a hierarchy of labels (Xue et al., 2019)")
class DANet(RandomModule, Head):
    """Classify at every level of a hierarchy, each class by K maps that should not look alike.

    Level l reads its own stage and has K maps r_{l,c,k} per class, from `ClassMaps`:

        m_l = attention_l(mean over k of r_l)            logits_l = mean over (h, w) of m_l
        loss = 0.5 sum_l cross_entropy(logits_l, y_l) + alpha L_div

    L_div: the K maps of the true class of every level are brought to the largest map's size (bilinear,
    aligned corners) and half of all of them are picked at random, the same for the whole batch. With
    cos(a, b) = a.b / sqrt(|a|^2 |b|^2 + 1e-8), L_div = mean over images of |sum over pairs of cos| / pairs.

    At test, the map of a class is the sum over levels of mean over k of relu(r_{l,c',k}), in the largest
    map's size, where c' is, for `fuse`

        ancestors:  the class's own ancestor at that level
        ranked:     what the level itself ranks as high as the class is ranked, as the authors' code does

    Xue et al., "DANet: Divergent Activation for Weakly Supervised Object Localization", ICCV 2019.

    `maps` and `logits` of the output are the finest level's; `extras` holds `logits/LEVEL` (N, C_l) and
    `raw/LEVEL` (N, C_l, K, h, w), the maps r.

    Where labels are mixed, every term is the weighted mean over the pairs (our reading).

    Our reading: an attention acts on the mean map per class, and its mask is left out of the fused map. The
    levels read the last stages of the backbone's pyramid. A rank beyond a level's last label takes that
    last one. Widths are twice a stage's channels, at most `channels`, which gives the authors' on VGG16.

    Args:
        levels: the levels to learn, named as in the hierarchy; all of them if None. The finest is needed.
        maps_per_class: K.
        alpha: weight of the divergence.
        fuse: see above.
        channels: largest width of the 3x3 convolutions.

    Raises:
        ValueError: no hierarchy where levels above the classes are asked for, a level that it does not have
            or with a single label, more levels than stages, too few maps to compare.
    """

    ancestors: Tensor

    def __init__(
        self,
        outline: Outline,
        classes: int,
        hierarchy: Hierarchy | None,
        make_attention: MakeAttention,
        levels: tuple[str, ...] | None = None,
        maps_per_class: int = 8,
        alpha: float = 0.01,
        fuse: Literal["ancestors", "ranked"] = "ancestors",
        channels: int = 1024,
    ) -> None:
        super().__init__()
        labels = _labels_of_levels(levels, classes, hierarchy)
        if len(labels) > len(outline.pyramid):
            raise ValueError(
                f"{len(labels)} levels, but the backbone has {len(outline.pyramid)} stages for them"
            )
        self.levels = tuple(labels)
        self.maps_per_class = maps_per_class
        self.num_picks = len(labels) * maps_per_class // 2
        if self.num_picks < 2:
            raise ValueError(f"maps_per_class of {maps_per_class} leaves no two maps to compare")
        self.alpha = alpha
        self.fuse = fuse
        # It comes from the data set's hierarchy, not from training, so it is no part of a checkpoint.
        self.register_buffer("ancestors", torch.stack(list(labels.values())), persistent=False)

        read = outline.pyramid[-len(labels) :]
        sizes = [int(column.max()) + 1 for column in labels.values()]
        self.reads = tuple(feature.name for feature in read)
        self.class_maps = nn.ModuleList(
            ClassMaps(feature.channels, min(channels, 2 * feature.channels), size * maps_per_class)
            for feature, size in zip(read, sizes, strict=True)
        )
        self.attentions = nn.ModuleList(make_attention(size) for size in sizes)

    def forward(self, features: Mapping[str, Tensor], labels: Tensor | None, tail: Tail) -> LocalizerOutput:
        extras: dict[str, Tensor] = {}
        for level, name, class_maps, attention in zip(
            self.levels, self.reads, self.class_maps, self.attentions, strict=True
        ):
            raw = class_maps(features[name]).unflatten(1, (-1, self.maps_per_class))
            maps = attention(raw.mean(dim=2))
            extras[f"raw/{level}"] = raw
            extras[f"logits/{level}"] = maps.mean(dim=(2, 3))
        return LocalizerOutput(extras[f"logits/{self.levels[-1]}"], maps, extras)

    def loss(self, output: LocalizerOutput, targets: Targets) -> dict[str, Tensor]:
        levels = tuple(zip(self.levels, self.ancestors, strict=True))
        terms = {
            level: LEVEL_WEIGHT * cross_entropy(output.extras[f"logits/{level}"], relabel(targets, ancestors))
            for level, ancestors in levels
        }
        # The same maps are compared whatever the labels: one draw for all pairs of a mixed batch.
        picks = self.pick(self.num_picks, len(levels) * self.maps_per_class).tolist()

        def divergence_of(labels: Tensor) -> Tensor:
            maps = [select_maps(output.extras[f"raw/{level}"], of[labels]) for level, of in levels]
            return divergence(maps, picks)

        return {**terms, "divergence": self.alpha * weighted(divergence_of, targets)}

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        index = labels.reshape(len(labels), -1)
        chosen = self._ranked(output, index) if self.fuse == "ranked" else self.ancestors[:, index]
        fused = [
            select_maps(output.extras[f"raw/{level}"], at_level).relu().mean(dim=2)
            for level, at_level in zip(self.levels, chosen, strict=True)
        ]
        size = fused[0].shape[2:]
        total = sum((enlarge(maps, size) for maps in fused[1:]), start=fused[0])
        return total.reshape(*labels.shape, *size)

    def _ranked(self, output: LocalizerOutput, index: Tensor) -> list[Tensor]:
        """For each level the labels that it ranks as high as the finest level ranks `index`."""
        orders = [
            output.extras[f"logits/{level}"].argsort(dim=1, descending=True, stable=True)
            for level in self.levels
        ]
        ranks = orders[-1].argsort(dim=1).gather(1, index)
        return [order.gather(1, ranks.clamp(max=order.shape[1] - 1)) for order in orders]

    def extra_repr(self) -> str:
        levels = ", ".join(self.levels)
        return f"{levels}; maps_per_class={self.maps_per_class}, alpha={self.alpha}, fuse={self.fuse}"


def divergence(maps: Sequence[Tensor], picks: Sequence[int]) -> Tensor:
    """How alike the picked maps are: mean over images of |sum over pairs of cos(a, b)| / pairs.

    maps: per level (N, K, h, w), the largest first. picks: numbers into all the maps, level by level.
    """
    size = maps[0].shape[2:]
    per_level = maps[0].shape[1]
    chosen = []
    for level, level_maps in enumerate(maps):
        mine = [pick - level * per_level for pick in picks if pick // per_level == level]
        if mine:
            chosen.append(enlarge(level_maps[:, mine], size).flatten(2))
    # Products of squared norms overflow half precision.
    with torch.autocast(maps[0].device.type, enabled=False):
        a = torch.cat(chosen, dim=1)
        a = a.to(torch.promote_types(a.dtype, torch.float32))
        dots = a @ a.mT
        squares = dots.diagonal(dim1=1, dim2=2)
        cosines = dots / (squares[:, :, None] * squares[:, None, :] + 1e-8).sqrt()
        pairs = len(picks) * (len(picks) - 1) // 2
        return cosines.triu(diagonal=1).sum(dim=(1, 2)).abs().mean() / pairs


def enlarge(maps: Tensor, size: torch.Size) -> Tensor:
    """Bilinear with aligned corners to `size`; maps that have it are left as they are."""
    if maps.shape[2:] == size:
        return maps
    return F.interpolate(maps, size=tuple(size), mode="bilinear", align_corners=True)


def _labels_of_levels(
    levels: tuple[str, ...] | None, classes: int, hierarchy: Hierarchy | None
) -> dict[str, Tensor]:
    """For each level, from coarse to fine, the label of every class at it: (classes,) int64."""
    if hierarchy is None:
        if levels is None or len(levels) != 1:
            raise ValueError(
                "needs a hierarchy, and this data set has none; for the classes alone set levels: [species]"
            )
        return {levels[0]: torch.arange(classes)}
    finest = hierarchy.levels[0]
    if hierarchy.num(finest) != classes:
        raise ValueError(
            f"the hierarchy has {hierarchy.num(finest)} {finest}, the data set {classes} classes"
        )
    for level in levels or ():
        if level not in hierarchy.levels:
            raise ValueError(f"levels: no level {level!r}: the hierarchy has {', '.join(hierarchy.levels)}")
    wanted = [level for level in reversed(hierarchy.levels) if levels is None or level in levels]
    if finest not in wanted:
        raise ValueError(f"levels: {finest} is what the localizer predicts and cannot be left out")
    for level in wanted:
        if hierarchy.num(level) < 2:
            others = ", ".join(name for name in reversed(wanted) if hierarchy.num(name) > 1)
            raise ValueError(
                f"all classes are of one {level}, so there is nothing to learn; levels: [{others}]"
            )
    return {level: torch.as_tensor(hierarchy.labels(level)) for level in wanted}
