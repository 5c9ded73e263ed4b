"""Photos without labels: every picture below a folder, for networks that learn without classes."""

from __future__ import annotations

from pathlib import Path

from wsol.class_names import OBJECT
from wsol.data.faults import Faults
from wsol.data.image_cache import cached_sizes
from wsol.data.sets.data_set import DataSet
from wsol.data.walk import as_text, walk
from wsol.errors import DataError
from wsol.records import DataIndex, Sample
from wsol.registry import DATASETS


@DATASETS.register("photos", "photos without labels, as `wsol discover` takes them: all for training")
class Photos(DataSet):
    """Every picture below the folder, all of one class, `object`, and without boxes."""

    @classmethod
    def detect(cls, root: Path) -> bool:
        """Never: nothing in a folder says that its sub-folders are no classes."""
        return False

    def read(self, root: Path, faults: Faults) -> DataIndex:
        root = Path(root)
        if not root.is_dir():
            raise DataError(f"{root}: no such folder of photos")
        found = walk(root)
        for path, reason in found.unreadable.items():
            faults.report(path, None, reason)
        names = sorted(found.images)
        if not names:
            raise DataError(f"{root}: no pictures in this folder")
        paths = [root / name for name in names]
        samples = [
            Sample(as_text(name), path, 0, (), "train", size)
            for name, path, size in zip(names, paths, cached_sizes(root, paths), strict=True)
        ]
        return DataIndex("photos", root, tuple(samples), (OBJECT,))
