"""`wsol.build_localizer`: the network that a config describes, without training it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wsol.config import Config, Data
from wsol.data.hierarchy import Hierarchy, cub_hierarchy
from wsol.data.index import open_dataset
from wsol.errors import ConfigError, DataError
from wsol.models import localizer
from wsol.models.building import build_model
from wsol.models.localizer import Localizer
from wsol.models.trainable import Trainable
from wsol.notices import note


def build_localizer(
    config: Config | Mapping[str, Any] | Path | str,
    classes: int | None = None,
    *,
    set: Mapping[str, Any] | None = None,
) -> Localizer:
    """The localizer of a config, with its first weights.

    Args:
        config: a `Config`, a YAML file, or nested values as a file holds them.
        classes: how many. None for those of the data set, or for the 200 of CUB-200-2011 where there is none
            yet. A head that needs a hierarchy gets the data set's, or that of the first species of CUB.
        set: values that change, by their dotted key.

    >>> import torch, wsol
    >>> tiny = {"model": {"backbone": "tiny", "weights": "none", "attention": "gpca"}}
    >>> find = wsol.build_localizer(tiny, classes=5).eval()
    >>> output = find(torch.zeros(1, 3, 64, 64, dtype=torch.uint8))
    >>> tuple(output.logits.shape), tuple(output.maps.shape)
    ((1, 5), (1, 5, 8, 8))
    """
    checked = Config.read(config, set=set)
    if checked.network is not None:
        raise ConfigError("network: this config describes a plain classifier, not a localizer")
    number, hierarchy = _labels(checked.data, classes)
    return localizer.build_localizer(checked.model, number, hierarchy, checked.data.image_size)


def build_described(config: Config, classes: int | None = None) -> Trainable:
    """The localizer or the plain classifier of a config, with its first weights. classes: as above."""
    number, hierarchy = _labels(config.data, classes)
    return build_model(config, number, hierarchy)


def _labels(data: Data, classes: int | None) -> tuple[int, Hierarchy | None]:
    """How many classes there are, and the tree over them."""
    tree = cub_hierarchy("danet")
    species = tree.names[0]
    if classes is not None:
        return classes, tree.subset(species[:classes]) if 1 < classes <= len(species) else None
    if not data.root.exists():
        note(f"{data.root}: no data set here; the {len(species)} classes of CUB-200-2011 are used")
        return len(species), tree
    try:
        index = open_dataset(data)
    except DataError as error:
        raise DataError(f"{error}; without a data set, give the number of classes (--classes)") from None
    return len(index.classes), index.hierarchy
