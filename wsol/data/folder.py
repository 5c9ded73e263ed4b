"""The user's own images, one folder for each class.

::

    ROOT/CLASS/...jpg                   split by `test_share`
    ROOT/train/CLASS/...jpg             split by folder; val/ may be there too,
    ROOT/test/CLASS/...jpg              and stands for test/ where that is missing, as in ImageNet

Boxes, and if need be labels and splits, come from an annotation file (`wsol.data.annotations`), whose paths
are below ROOT. With such a file its images are the data set, wherever they lie. Where it gives no label the
folder does, and where it gives no split the folder or `test_share` does. Boxes are in pixels of the upright
image.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from wsol.data.annotations import Listed, read_annotations
from wsol.data.faults import Faults
from wsol.data.image import SUFFIXES, image_sizes
from wsol.data.split import choose_share
from wsol.data.textfile import fit_box
from wsol.errors import ConfigError, DataError
from wsol.records import SPLITS, DataIndex, Sample
from wsol.registry import DATASETS


@DATASETS.register("folder", "your own images: one folder for each class, boxes from a CSV or COCO file")
def load_folder(
    root: Path, annotations: Path | None = None, test_share: float = 0.2, seed: int = 0
) -> DataIndex:
    """The index of a folder of images.

    annotations: a CSV or COCO file. test_share: of each class, for the images whose split nothing else tells;
    chosen by seed, at least one of two.
    """
    return read_folder(root, Faults(), annotations, test_share, seed)


@dataclass(frozen=True)
class Place:
    """What the folders of an image say: its split, if they do, and its class."""

    split: str | None
    label: str | None


def read_folder(
    root: Path,
    faults: Faults,
    annotations: Path | None = None,
    test_share: float = 0.2,
    seed: int = 0,
) -> DataIndex:
    """As `load_folder`; what is wrong goes to `faults`, and an image without a class is left out."""
    root = Path(root)
    if not 0 <= test_share < 1:
        raise ConfigError(f"data.test_share: {test_share} is outside 0 to 1")
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; it should hold one folder of images for each class")
    if annotations is not None:
        listed = read_annotations(Path(annotations), faults)
        source = Path(annotations)
    else:
        listed = {name: Listed(None) for name in _image_names(root)}
        source = root
    if not listed and not faults.found:
        raise DataError(f"{source}: no images; expected {root}/CLASS/*.jpg or {root}/train/CLASS/*.jpg")

    places = {name: _place(root, name) for name in listed}
    labels: dict[str, str] = {}
    for name, entry in listed.items():
        label = entry.label or places[name].label
        if label is None:
            where = source if annotations is not None else root / name
            faults.report(
                where, entry.line, f"{name} has no class: give a label, or put it in a folder of its class"
            )
        else:
            labels[name] = label
    splits = _splits(listed, places, labels, test_share, seed)
    classes = tuple(sorted(set(labels.values())))
    label_of = {name: label for label, name in enumerate(classes)}
    paths = [root / name for name in labels]
    samples = []
    for (name, class_name), path, size in zip(labels.items(), paths, image_sizes(paths), strict=True):
        boxes = [fit_box(box, size, source, line, faults) for line, box in listed[name].boxes]
        samples.append(
            Sample(
                name=name,
                path=path,
                label=label_of[class_name],
                boxes=tuple(box for box in boxes if box is not None),
                split=splits[name],
                size=size,
            )
        )
    return DataIndex("folder", root, tuple(samples), classes)


def _image_names(root: Path) -> list[str]:
    """Every image file below the folder, as a path relative to it; hidden ones are not looked at."""
    names = (p.relative_to(root).as_posix() for p in root.rglob("*") if p.suffix.lower() in SUFFIXES)
    return sorted(n for n in names if not any(part.startswith((".", "__MACOSX")) for part in n.split("/")))


def _place(root: Path, name: str) -> Place:
    folders = PurePosixPath(name).parts[:-1]
    split = None
    if folders and folders[0] in SPLITS and (root / "train").is_dir():
        split = folders[0]
        if split == "val" and not (root / "test").is_dir():
            split = "test"
        folders = folders[1:]
    return Place(split, folders[0] if folders else None)


def _splits(
    listed: dict[str, Listed],
    places: dict[str, Place],
    labels: dict[str, str],
    test_share: float,
    seed: int,
) -> dict[str, str]:
    """The split of each image: what its annotation says, else its folder, else chosen by share."""
    splits: dict[str, str] = {}
    open_names: dict[str, list[str]] = defaultdict(list)
    for name, label in labels.items():
        told = listed[name].split or places[name].split
        if told is not None:
            splits[name] = told
        else:
            open_names[label].append(name)
    for names in open_names.values():
        test = choose_share(names, test_share, seed)
        splits |= {name: "test" if name in test else "train" for name in names}
    return splits
