"""A look at a folder of photos before there is a config: what kind it is, its classes, boxes and faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wsol.data.annotations import read_annotations
from wsol.data.faults import Faults
from wsol.data.index import detect_kind, read_dataset, refuse_bad_images
from wsol.data.walk import walk
from wsol.errors import DataError
from wsol.records import DataIndex, Sample
from wsol.registry import DATASETS

TABLES = (".csv", ".json")  # suffixes of files that may list boxes


@dataclass(frozen=True)
class Survey:
    """What a folder of photos holds.

    index: the photos that can be used; those for test that cannot be read are among them, since they count
    as a miss. bad: why photos cannot be used, one line each. annotations: the file that lists boxes. notes:
    what else a user should know, such as a table in the folder that is not used.
    """

    kind: str
    index: DataIndex
    bad: tuple[str, ...] = ()
    annotations: Path | None = None
    notes: tuple[str, ...] = ()
    options: frozenset[str] = field(default=frozenset())  # what a config may set for this kind

    @property
    def boxed(self) -> int:
        """How many photos have a box."""
        return sum(bool(s.boxes) for s in self.index.samples)

    def per_class(self, split: str) -> list[int]:
        """The number of photos of each class in a split."""
        counts = Counter(s.label for s in self.index.split(split))
        return [counts[label] for label in range(len(self.index.classes))]


def survey(root: Path, annotations: Path | None = None, test_share: float = 0.0) -> Survey:
    """Look at the folder `root`.

    annotations: the file of boxes; None to look for one in the folder itself. test_share: the part of the
    photos for test, where the data set itself does not tell them.

    Raises DataError where `wsol train` could not use the folder, with every fault in its details.
    """
    root = Path(root)
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; give the folder that holds your photos")
    options: dict[str, Any] = {} if annotations is None else {"annotations": annotations}
    kind = detect_kind(root, options)
    takes = frozenset(DATASETS.options(kind))
    notes: list[str] = []
    if annotations is None and "annotations" in takes:
        annotations, notes = find_annotations(root)
    if annotations is not None:
        options["annotations"] = annotations
    if "test_share" in takes:
        options["test_share"] = test_share
    faults = Faults(collect=True)
    index = read_dataset(root, faults, kind, **options)
    if not index.classes and annotations is None:
        raise DataError(
            f"{root}: {len(faults.found):,} photos without a class, and training needs one for each: make "
            "one folder for each class (PHOTOS/cat/*.jpg, PHOTOS/dog/*.jpg), or put a CSV file with the "
            "columns image,label into the folder"
        )
    if faults.found:
        raise DataError.listing(f"{root}: to mend first", faults.found)
    if len(index.classes) < 2:
        raise DataError(
            f"{root}: training needs two classes or more, and here is {' '.join(index.classes) or 'none'}: "
            "add a folder with photos of something else"
        )
    usable, bad = refuse_bad_images(index, "skip")
    notes += _remarks(root, usable, annotations, faults)
    return Survey(kind, usable, bad, annotations, tuple(notes), takes)


def find_annotations(root: Path) -> tuple[Path | None, list[str]]:
    """The CSV or COCO file in the folder that lists photos of it, and why other tables there are not used.

    Raises DataError where two files list photos.
    """
    found: list[Path] = []
    notes: list[str] = []
    tables = [p for p in root.iterdir() if p.suffix.lower() in TABLES and not p.name.startswith(".")]
    for path in sorted(tables):
        try:
            listed = read_annotations(path, Faults(collect=True))
        except DataError as error:
            notes.append(f"not used as a list of boxes: {error}")
            continue
        found.append(path)
        if not listed:
            notes.append(f"{path}: lists no photo")
    if len(found) > 1:
        names = " and ".join(p.name for p in found)
        raise DataError(f"{root}: {names} both list photos; say which one with --annotations FILE")
    return (found[0] if found else None), notes


def _remarks(root: Path, index: DataIndex, annotations: Path | None, faults: Faults) -> Iterator[str]:
    yield from faults.notes
    if annotations is not None:
        unlisted = len(walk(root).images) - len(index.samples)
        if unlisted > 0:
            yield f"{annotations.name} does not list {unlisted:,} of the photos; they are not used"
    boxed = [s for s in index.samples if s.boxes]
    if 0 < len(boxed) < len(index.samples):
        first = next(s for s in index.samples if not s.boxes)
        without = f"{len(index.samples) - len(boxed):,} photos have no box, the first is {first.name}"
        yield f"{without}; as a test photo each of them is a miss"
    empty = [name for label, name in enumerate(index.classes) if not _has(index.split("train"), label)]
    if empty:
        yield f"no photo to train on: {', '.join(empty[:5])}{', ...' if len(empty) > 5 else ''}"


def _has(samples: tuple[Sample, ...], label: int) -> bool:
    return any(s.label == label for s in samples)
