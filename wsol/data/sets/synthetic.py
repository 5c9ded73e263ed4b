"""The painted birds as a data set that a config can name: painted where the folder does not exist yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from wsol.data.faults import Faults
from wsol.data.sets.cub import Cub
from wsol.data.sets.data_set import DataSet
from wsol.errors import DataError
from wsol.notices import note
from wsol.records import DataIndex
from wsol.registry import DATASETS


@DATASETS.register("synthetic", "birds that the toolkit paints itself, with exact boxes and segmentations")
class Synthetic(DataSet):
    """Painted birds, in the layout of CUB-200-2011.

    species: how many classes. train, test: images of each. size: their long side in pixels.
    """

    def __init__(
        self, species: int = 12, train: int = 40, test: int = 20, size: int = 160, seed: int = 0
    ) -> None:
        self.species, self.train, self.test, self.size, self.seed = species, train, test, size, seed

    @classmethod
    def detect(cls, root: Path) -> bool:
        """Never: birds that are painted already are a data set in CUB layout, and are read as one."""
        return False

    def read(self, root: Path, faults: Faults) -> DataIndex:
        """The birds in `root`, painted first where that folder does not exist.

        Existing birds are used as they are. A note says so where they are not what the options ask for.
        """
        root = Path(root)
        if not root.exists():
            self._paint(root)
        index = replace(Cub().read(root, faults), name="synthetic")
        asked = {
            "species": self.species,
            "training images": self.species * self.train,
            "test images": self.species * self.test,
            "long side": self.size,
        }
        there = {
            "species": len(index.classes),
            "training images": len(index.split("train")),
            "test images": len(index.split("test")),
            "long side": max((max(s.size) for s in index.samples if s.size), default=self.size),
        }
        other = [
            f"{what}: {there[what]:,} instead of {asked[what]:,}"
            for what in asked
            if there[what] != asked[what]
        ]
        if other:
            note(
                f"{root} holds other birds than the config asks for ({', '.join(other)}); these "
                "are used; to have the others painted, set data.root to a new folder"
            )
        return index

    def _paint(self, root: Path) -> None:
        from wsol.data.synthetic.paint import make_dataset  # slow to import, and needed once

        images = self.species * (self.train + self.test)
        note(f"painting {images:,} images of {self.species} species into {root}")
        try:
            make_dataset(
                root, species=self.species, train=self.train, test=self.test, size=self.size, seed=self.seed
            )
        except (DataError, OSError):
            if not (root / "images.txt").is_file():  # else another process was faster, with the same bytes
                raise
