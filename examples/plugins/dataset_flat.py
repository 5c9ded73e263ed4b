"""A data set: how to tell that a folder is of this kind, and how to read it.

::

    ROOT/flat.csv          file,class,split,x0,y0,x1,y1      one line for each image
    ROOT/*.jpg             all images in one folder
"""

import csv
from pathlib import Path

from wsol.data.faults import Faults
from wsol.data.image_cache import cached_sizes
from wsol.data.sets.data_set import DataSet
from wsol.records import Box, DataIndex, Sample
from wsol.registry import DATASETS


@DATASETS.register("flat", "all images in one folder, listed in flat.csv")
class Flat(DataSet):
    """limit: take this many images of each class, to try something quickly."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit

    @classmethod
    def detect(cls, root: Path) -> bool:
        return (root / "flat.csv").is_file()

    def read(self, root: Path, faults: Faults) -> DataIndex:
        with (root / "flat.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        classes = tuple(sorted({row["class"] for row in rows}))
        sizes = cached_sizes(root, [root / row["file"] for row in rows])
        samples: list[Sample] = []
        for line, (row, size) in enumerate(zip(rows, sizes, strict=True), start=2):
            if row["split"] not in ("train", "test"):
                faults.report(root / "flat.csv", line, f"split {row['split']!r}: expected train or test")
                continue
            label = classes.index(row["class"])
            taken = sum(s.label == label and s.split == row["split"] for s in samples)
            if self.limit is None or taken < self.limit:
                box = Box(*(float(row[corner]) for corner in ("x0", "y0", "x1", "y1")))
                samples.append(Sample(row["file"], root / row["file"], label, (box,), row["split"], size))
        return DataIndex("flat", root, tuple(samples), classes)
