"""CIFAR-10 and CIFAR-100, as `wsol data prepare` makes them from the published archives.

::

    ROOT/train/CLASS/00000.png      50,000 images of 32x32
    ROOT/test/CLASS/00000.png       10,000
    ROOT/published.txt              which data set it is

The images have labels and no boxes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from wsol.data.cifar import CIFAR10, CIFAR100, PublishedCifar, prepared_kind
from wsol.data.faults import Faults
from wsol.data.sets.data_set import DataSet
from wsol.data.sets.folder import Folder
from wsol.errors import DataError
from wsol.records import DataIndex
from wsol.registry import DATASETS


class PreparedCifar(DataSet):
    """One of the two data sets, as images in folders."""

    published: ClassVar[PublishedCifar]

    @classmethod
    def detect(cls, root: Path) -> bool:
        return prepared_kind(root) == cls.published.name

    def read(self, root: Path, faults: Faults) -> DataIndex:
        own = self.published
        if prepared_kind(Path(root)) != own.name:
            raise DataError(
                f"{root}: {own.name} is not here; unpack its published archive with 'wsol data prepare "
                f"{own.archive} {root}'"
            )
        return replace(Folder().read(root, faults), name=own.name)


@DATASETS.register("cifar10", "CIFAR-10, as 'wsol data prepare' unpacks its published archive")
class Cifar10(PreparedCifar):
    published = CIFAR10


@DATASETS.register("cifar100", "CIFAR-100, as 'wsol data prepare' unpacks its published archive")
class Cifar100(PreparedCifar):
    published = CIFAR100
