"""The painted data set as one that a config can name: painted where it is not there yet."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from wsol.data.cub import load_cub
from wsol.errors import DataError
from wsol.records import DataIndex
from wsol.registry import DATASETS


@DATASETS.register("synthetic", "birds that the toolkit paints itself, with exact boxes and masks")
def load_synthetic(
    root: Path, species: int = 12, train: int = 40, test: int = 20, size: int = 160, seed: int = 0
) -> DataIndex:
    """The painted birds in `root`; they are painted first where that folder does not exist.

    species: how many classes. train, test: images of each. size: their long side in pixels.
    """
    root = Path(root)
    if not root.exists():
        from wsol.data.synthetic.paint import make_dataset  # the painter is needed once, the index often

        images = species * (train + test)
        print(f"painting {images:,} images of {species} species into {root}", file=sys.stderr)
        try:
            make_dataset(root, species=species, train=train, test=test, size=size, seed=seed)
        except (DataError, OSError):
            if not (root / "images.txt").is_file():  # else another process was faster, with the same bytes
                raise
    index = replace(load_cub(root), name="synthetic")
    asked = {"species": species, "train": species * train, "test": species * test, "size": size}
    there = {
        "species": len(index.classes),
        "train": len(index.split("train")),
        "test": len(index.split("test")),
        "size": max((max(s.size) for s in index.samples if s.size), default=size),
    }
    for what, count in asked.items():
        if there[what] != count:
            raise DataError(
                f"{root}: holds other birds than data asks for ({what}: {there[what]}, not {count}); "
                "choose a new root to have them painted, or read these as they are with 'name: cub'"
            )
    return index
