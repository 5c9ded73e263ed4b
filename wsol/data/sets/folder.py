"""The user's own images, one folder for each class.

::

    ROOT/CLASS/...jpg                   split by `test_share`
    ROOT/train/CLASS/...jpg             split by folder; val/ may be there too,
    ROOT/test/CLASS/...jpg              and stands for test/ where that is missing, as in ImageNet

CLASS, and every other folder, may be a link. Boxes, and if you like labels and splits, come from an
annotation file (`wsol.data.annotations`) whose paths are below ROOT. With such a file the data set is the
images that it lists. Where it gives no label the folder does, and where it gives no split the folder or
`test_share` does. Boxes are in pixels of the upright image.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wsol.data.annotations import ListedImage, read_annotations
from wsol.data.faults import Faults
from wsol.data.image_cache import cached_sizes
from wsol.data.sets.data_set import DataSet
from wsol.data.split import choose_share
from wsol.data.textfile import fit_box
from wsol.data.walk import as_text, walk
from wsol.errors import ConfigError, DataError
from wsol.records import SPLITS, DataIndex, Sample
from wsol.registry import DATASETS


@dataclass(frozen=True)
class FolderFacts:
    """What the folders of an image say: its split, if they do, and its class."""

    split: str | None
    label: str | None


@DATASETS.register("folder", "your own images: one folder for each class, boxes from a CSV or COCO file")
class Folder(DataSet):
    """A folder of images.

    annotations: a CSV or COCO file. test_share: of each class, for the images whose split nothing else tells;
    chosen by seed, at least one of two.
    """

    takes_any_folder = True

    def __init__(self, annotations: Path | None = None, test_share: float = 0.2, seed: int = 0) -> None:
        if not 0 <= test_share < 1:
            raise ConfigError(f"data.test_share: {test_share} is outside 0 to 1")
        self.annotations = annotations
        self.test_share, self.seed = test_share, seed

    @classmethod
    def detect(cls, root: Path) -> bool:
        """Always: any folder may hold images."""
        return True

    def read(self, root: Path, faults: Faults) -> DataIndex:
        """As for every data set; an image without a class is left out of the index."""
        root = Path(root)
        if not root.is_dir():
            raise DataError(f"{root}: no such folder; it should hold one folder of images for each class")
        if self.annotations is not None:
            source = Path(self.annotations)
            listed = read_annotations(source, faults)
            files = {name: root / name for name in listed}
        else:
            source = root
            files = _list_images(root, faults)
            listed = {name: ListedImage(None) for name in files}
        if not listed and not faults.found:
            raise DataError(f"{source}: no images; expected {root}/CLASS/*.jpg or {root}/train/CLASS/*.jpg")

        split_folders = [f for f in SPLITS if (root / f).is_dir()] if (root / "train").is_dir() else []
        places = {name: _place(name, split_folders) for name in listed}
        labels: dict[str, str] = {}
        for name, entry in listed.items():
            label = entry.label or places[name].label
            if label is None:
                where = source if self.annotations is not None else files[name]
                faults.report(
                    where,
                    entry.line,
                    f"{name} has no class: give a label, or put it in a folder of its class",
                )
            else:
                labels[name] = label
        splits = _splits(listed, places, labels, self.test_share, self.seed)
        classes = tuple(sorted(set(labels.values())))
        label_of = {name: label for label, name in enumerate(classes)}
        paths = [files[name] for name in labels]
        sizes = cached_sizes(root, paths)
        samples = []
        for (name, class_name), path, size in zip(labels.items(), paths, sizes, strict=True):
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


def _list_images(root: Path, faults: Faults) -> dict[str, Path]:
    """Every image file below the folder, by its name in the data set: its path below `root`, as text.

    Class folders may be links. A folder that cannot be read is a fault, one without images a note, so that no
    class is missing without a message.
    """
    found = walk(root)
    for path, reason in found.unreadable.items():
        faults.report(path, None, reason)
    for folder in found.empty_folders():
        faults.note(folder, None, "no images in this folder")
    images: dict[str, Path] = {}
    for name in found.images:
        text = as_text(name)
        if text in images:
            faults.report(
                root / name, None, f"two images are called {text} when their names are written as text"
            )
        images.setdefault(text, root / name)
    return images


def _place(name: str, split_folders: Sequence[str]) -> FolderFacts:
    """split_folders: the folders of the data set that are splits; none where there is no folder train."""
    folders = name.split("/")[:-1]
    split = None
    if folders and folders[0] in split_folders:
        split = "test" if folders[0] == "val" and "test" not in split_folders else folders[0]
        folders = folders[1:]
    return FolderFacts(split, folders[0] if folders else None)


def _splits(
    listed: dict[str, ListedImage],
    places: dict[str, FolderFacts],
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
