"""What every kind of data set is: something that recognises its folders and reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from wsol.data.faults import Faults
from wsol.records import DataIndex


class DataSet(ABC):
    """A kind of data set. The arguments of the constructor are the options that a config may set.

    To add a kind, write one file with one registration, here or in a module of your own::

        @DATASETS.register("pairs", "images called CLASS_NUMBER.png in one folder")
        class Pairs(DataSet):
            def __init__(self, test_number: int = 0) -> None:
                self.test_number = test_number

            @classmethod
            def detect(cls, root: Path) -> bool:
                return any(root.glob("*_*.png"))

            def read(self, root: Path, faults: Faults) -> DataIndex:
                paths = sorted(root.glob("*_*.png"))
                classes = sorted({path.stem.split("_")[0] for path in paths})
                samples = []
                for path, size in zip(paths, cached_sizes(root, paths)):
                    name, number = path.stem.split("_")
                    split = "test" if int(number) == self.test_number else "train"
                    samples.append(Sample(path.name, path, classes.index(name), (), split, size))
                return DataIndex("pairs", root, tuple(samples), tuple(classes))

    Then `data: {name: pairs, root: my/images, test_number: 1}` works in a config, and `wsol data check` finds
    out by itself that a folder is of this kind.
    """

    # Whether `detect` says yes to nearly any folder. Such kinds are asked after all others.
    takes_any_folder: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def detect(cls, root: Path) -> bool:
        """Whether the folder `root`, which exists, looks like a data set of this kind."""

    @abstractmethod
    def read(self, root: Path, faults: Faults) -> DataIndex:
        """The index of the data set in `root`.

        What is wrong goes to `faults`, which raises DataError or collects; where it collects, go on without
        the image. Image sizes come from `wsol.data.image_cache.cached_sizes`, which remembers them.
        """
