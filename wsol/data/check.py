"""One pass over a data set that lists every fault, not only the first one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from wsol.data.faults import Faults
from wsol.data.image import ImageFacts
from wsol.data.image_cache import ImageCache
from wsol.data.index import read_dataset
from wsol.data.walk import walk
from wsol.errors import DataError
from wsol.records import DataIndex, Sample


@dataclass(frozen=True)
class CheckReport:
    """What a check found. A fault stops training; a note is worth knowing, such as that an image is grey."""

    index: DataIndex
    faults: tuple[str, ...]
    notes: tuple[str, ...]

    def summary(self) -> str:
        """Such as '2,354 images, 40 classes, no fault'."""
        count = len(self.faults)
        faults = "no fault" if not count else "1 fault" if count == 1 else f"{count:,} faults"
        return f"{len(self.index.samples):,} images, {len(self.index.classes):,} classes, {faults}"


def check_dataset(root: Path, kind: str | None = None, **options: Any) -> CheckReport:
    """Read every annotation and every file once, and list what is wrong or strange.

    kind, options: as `wsol.data.index.read_dataset` takes them.
    """
    faults = Faults(collect=True)
    index = read_dataset(root, faults, kind, **options)
    facts = _inspect(index, faults)
    _find_copies(facts, faults)
    _count_segmentations(index, faults)
    _find_strays(index, faults)
    _find_empty_classes(index, faults)
    return CheckReport(index, tuple(faults.found), tuple(faults.notes))


def _inspect(index: DataIndex, faults: Faults) -> dict[Sample, ImageFacts]:
    """Decode every image and segmentation, and return what is known of the images that can be read."""
    images = {s.path: s for s in index.samples}
    paths = [*images, *(s.segmentation_path for s in index.samples if s.segmentation_path)]
    found = ImageCache(index.root).inspect(paths, afresh=True)
    known = {}
    for path, result in zip(
        paths, tqdm(found, "reading images", len(paths), unit="img", disable=None), strict=True
    ):
        if isinstance(result, DataError):
            faults.add(result)
        elif path in images:
            known[images[path]] = result
            if result.oddities:
                faults.note(path, None, f"{', '.join(result.oddities)}; converted when it is read")
    return known


def _find_copies(facts: dict[Sample, ImageFacts], faults: Faults) -> None:
    """Byte-equal images: a fault between training and test, else a note."""
    first: dict[bytes, list[Sample]] = {}
    for sample, known in facts.items():
        twins = first.setdefault(known.digest, [])
        across = [t for t in twins if (t.split == "test") != (sample.split == "test")]
        if across:
            reason = f"the same image as {across[0].name}: one is for training, one for test"
            faults.report(sample.path, None, reason)
        elif twins:
            faults.note(sample.path, None, f"the same image as {twins[0].name}")
        twins.append(sample)


def _count_segmentations(index: DataIndex, faults: Faults) -> None:
    """Note where only some images have a segmentation: pixel scores then use only those."""
    lacking = [s for s in index.samples if s.segmentation_path is None]
    if lacking and len(lacking) < len(index.samples):
        count = f"{len(lacking):,} of {len(index.samples):,} images have no segmentation"
        faults.note(index.root, None, f"{count}, the first is {lacking[0].name}")


def _find_strays(index: DataIndex, faults: Faults) -> None:
    """Files among the images that the data set does not list, and folders that cannot be read."""
    found = walk(index.images_dir or index.root)
    listed = {s.path for s in index.samples}
    for name in found.files:
        if found.root / name not in listed:
            faults.note(found.root / name, None, "in no list, so not part of the data set")
    for path, reason in found.unreadable.items():
        fault = DataError.at(path, None, reason)
        if str(fault) not in faults.found:
            faults.add(fault)


def _find_empty_classes(index: DataIndex, faults: Faults) -> None:
    for split in ("train", "test"):
        counts = Counter(s.label for s in index.split(split))
        for label, name in enumerate(index.classes):
            if not counts[label]:
                faults.note(index.root, None, f"class {name} has no {split} image")
