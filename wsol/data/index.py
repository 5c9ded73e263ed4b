"""From a config's data section to the samples of a run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from wsol.config import Data
from wsol.data.split import choose_share
from wsol.records import DataIndex
from wsol.registry import DATASETS


def open_dataset(data: Data) -> DataIndex:
    """The data set that the config names, with its held-out part split off."""
    index = DATASETS.create(data.name, root=data.root, **data.options)
    return hold_out(index, data.val_share, data.val_seed)


def hold_out(index: DataIndex, share: float, seed: int) -> DataIndex:
    """Move a share of the *training* images of each class to `val`, where thresholds are chosen."""
    by_class: dict[int, list[str]] = defaultdict(list)
    for sample in index.split("train"):
        by_class[sample.label].append(sample.name)
    held = {name for names in by_class.values() for name in choose_share(names, share, seed)}
    return index.with_samples(
        [replace(s, split="val") if s.split == "train" and s.name in held else s for s in index.samples]
    )
