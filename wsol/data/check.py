"""One pass over a data set that lists everything wrong with it, not the first thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tqdm import tqdm

from wsol.data.cub import read_cub
from wsol.data.faults import Faults
from wsol.data.folder import read_folder
from wsol.data.image import ImageFacts, in_threads, inspect_image, read_segmentation
from wsol.errors import DataError
from wsol.records import DataIndex, Sample

Kind: TypeAlias = Literal["cub", "folder"]


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


def detect_kind(root: Path) -> Kind:
    """`cub` where the folder, or one in it, holds an images.txt, or is not there at all; else `folder`."""
    root = Path(root)
    if not root.is_dir() or (root / "images.txt").is_file():
        return "cub"
    return "cub" if any((child / "images.txt").is_file() for child in root.iterdir()) else "folder"


def read_dataset(root: Path, faults: Faults, kind: Kind | None, annotations: Path | None) -> DataIndex:
    """The index of a data set whose kind may be left open."""
    if annotations is None and (kind or detect_kind(root)) == "cub":
        return read_cub(root, faults)
    return read_folder(root, faults, annotations)


def check_dataset(root: Path, kind: Kind | None = None, annotations: Path | None = None) -> CheckReport:
    """Read every annotation and every file once, and list what is wrong or strange."""
    faults = Faults(collect=True)
    index = read_dataset(root, faults, kind, annotations)
    facts = _inspect(index.samples, faults)
    _find_copies(facts, faults)
    _find_strays(index, faults)
    _find_empty_classes(index, faults)
    return CheckReport(index, tuple(faults.found), tuple(faults.notes))


def _inspect(samples: Sequence[Sample], faults: Faults) -> dict[Sample, ImageFacts]:
    """Decode every image and mask, and return what is known of those that can be read."""

    def look(sample: Sample) -> ImageFacts | DataError:
        try:
            facts = inspect_image(sample.path)
            if sample.segmentation_path is not None:
                height, width = read_segmentation(sample.segmentation_path).shape
                if (width, height) != facts.size:
                    reason = f"mask of {width} x {height} for an image of {facts.size[0]} x {facts.size[1]}"
                    return DataError.at(sample.segmentation_path, None, reason)
            return facts
        except DataError as error:
            return error

    known = {}
    found = tqdm(in_threads(look, samples), "reading images", len(samples), unit="img", disable=None)
    for sample, result in zip(samples, found, strict=True):
        if isinstance(result, DataError):
            faults.add(result)
            continue
        known[sample] = result
        if result.oddities:
            faults.note(sample.path, None, f"{', '.join(result.oddities)}; converted when it is read")
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


def _find_strays(index: DataIndex, faults: Faults) -> None:
    """Files among the images that the data set does not list."""
    folder = index.root / "images" if index.name == "cub" else index.root
    listed = {s.path for s in index.samples}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in listed and not path.name.startswith("."):
            faults.note(path, None, "in no list, so not part of the data set")


def _find_empty_classes(index: DataIndex, faults: Faults) -> None:
    for split in ("train", "test"):
        counts = Counter(s.label for s in index.split(split))
        for label, name in enumerate(index.classes):
            if not counts[label]:
                faults.note(index.root, None, f"class {name} has no {split} image")
