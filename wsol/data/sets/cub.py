"""CUB-200-2011 as published, and everything laid out like it.

::

    ROOT/images.txt                 IMAGE_ID PATH            below images/
    ROOT/image_class_labels.txt     IMAGE_ID CLASS_ID
    ROOT/bounding_boxes.txt         IMAGE_ID X Y WIDTH HEIGHT
    ROOT/train_test_split.txt       IMAGE_ID 1 | 0           1 for training
    ROOT/classes.txt                CLASS_ID NAME
    ROOT/images/NAME/...jpg
    ROOT/segmentations/NAME/...png  optional, here or beside ROOT
    ROOT/hierarchy.csv              optional, used instead of the built-in table of CUB

Ids may have gaps, as in a subset. Labels are contiguous, in the order of class ids. Boxes are
clipped to their images (30 of the 11,788 published ones reach outside). The files are read strictly: each
malformed line is a DataError `file:line: reason`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from wsol.data.faults import Faults
from wsol.data.hierarchy import CubVersion, Hierarchy, cub_hierarchy, read_hierarchy_csv
from wsol.data.image_cache import cached_sizes
from wsol.data.sets.data_set import DataSet
from wsol.data.textfile import (
    box_from_corner,
    clipped,
    fit_box,
    number,
    numbered_lines,
    relative_path,
    whole,
)
from wsol.errors import ConfigError, DataError
from wsol.records import Box, DataIndex, Sample
from wsol.registry import DATASETS, suggest

V = TypeVar("V")

FILES = (
    "images.txt",
    "image_class_labels.txt",
    "bounding_boxes.txt",
    "train_test_split.txt",
    "classes.txt",
)


@dataclass(frozen=True)
class CubRow(Generic[V]):
    line: int
    value: V


@DATASETS.register("cub", "CUB-200-2011 as published, or any data set laid out like it")
class Cub(DataSet):
    """A data set in the layout of CUB-200-2011.

    classes: `all`; a list of class names ('001.Black_footed_Albatross' or without the number) or class ids;
    or `every-N`, the classes with the ids 1, 1 + N, 1 + 2N ...
    hierarchy: which grouping of the CUB classes, see `wsol.data.hierarchy.cub_hierarchy`.
    """

    def __init__(self, classes: str | tuple[int | str, ...] = "all", hierarchy: CubVersion = "danet") -> None:
        self.classes = classes
        self.hierarchy: CubVersion = hierarchy

    @classmethod
    def detect(cls, root: Path) -> bool:
        """Whether images.txt is here, or in a folder below, which `read` then names."""
        return _lists_images(root) or _find_below(root) is not None

    def read(self, root: Path, faults: Faults) -> DataIndex:
        """As for every data set; an image with a fault is left out of the index."""
        root = Path(root)
        _require_layout(root)
        names = _read(root / "classes.txt", "CLASS_ID NAME", _class_name, faults)
        images = _read(root / "images.txt", "IMAGE_ID PATH", relative_path, faults)
        labels = _read(
            root / "image_class_labels.txt", "IMAGE_ID CLASS_ID", _known_class(names), faults, images
        )
        boxes = _read(root / "bounding_boxes.txt", "IMAGE_ID X Y WIDTH HEIGHT", _box, faults, images)
        splits = _read(root / "train_test_split.txt", "IMAGE_ID 1|0", _split, faults, images)
        _refuse_twins(root, names, images, splits, faults)
        tables: tuple[Collection[int], ...] = (labels, boxes, splits)
        for file, table in zip(FILES[1:4], tables, strict=True):
            for image_id, row in images.items():
                if image_id not in table:
                    faults.report(root / "images.txt", row.line, f"image {image_id} has no row in {file}")

        chosen = select_classes({i: row.value for i, row in names.items()}, self.classes)
        label_of = {class_id: label for label, class_id in enumerate(chosen)}
        ids = [
            i for i in images if i in labels and i in boxes and i in splits and labels[i].value in label_of
        ]
        paths = [root / "images" / images[i].value for i in ids]
        segmentations = _segmentation_folder(root)
        samples = []
        for i, path, size in zip(ids, paths, cached_sizes(root, paths), strict=True):
            box = fit_box(boxes[i].value, size, root / "bounding_boxes.txt", boxes[i].line, faults)
            if box is None:
                continue
            name = images[i].value
            segmentation = segmentations / Path(name).with_suffix(".png") if segmentations else None
            samples.append(
                Sample(
                    name=name,
                    path=path,
                    label=label_of[labels[i].value],
                    boxes=(box,),
                    split=splits[i].value,
                    size=size,
                    segmentation_path=segmentation if segmentation and segmentation.is_file() else None,
                )
            )
        class_names = tuple(names[i].value for i in chosen)
        return DataIndex(
            "cub",
            root,
            tuple(samples),
            class_names,
            _hierarchy(root, self.hierarchy, class_names, faults),
            images_dir=root / "images",
        )


def select_classes(names: Mapping[int, str], classes: str | tuple[int | str, ...]) -> list[int]:
    """The ids of the selected classes in ascending order. See `Cub` for what can be asked for."""
    ids = sorted(names)
    if isinstance(classes, str):
        if classes == "all":
            return ids
        every = re.fullmatch(r"every-([1-9][0-9]{0,5})", classes)
        if not every:
            raise ConfigError(
                f"data.classes: {clipped(classes)} is not a selection; say 'all', 'every-5' or give a list"
            )
        return [i for i in ids if (i - 1) % int(every[1]) == 0]
    by_name = {name.partition(".")[2]: i for i, name in names.items() if re.match(r"[0-9]+\.", name)}
    by_name |= {name: i for i, name in names.items()}
    chosen: set[int] = set()
    for wanted in classes:
        class_id = wanted if isinstance(wanted, int) else by_name.get(wanted)
        if class_id is None or class_id not in names:
            hint = suggest(wanted, by_name) if isinstance(wanted, str) else ""
            raise ConfigError(
                f"data.classes: no class {wanted!r} in this data set{hint if 'mean' in hint else ''}"
            )
        chosen.add(class_id)
    return sorted(chosen)


def _require_layout(root: Path) -> None:
    """Raise, with what to do about it, where the folder is not a data set in this layout."""
    if not root.is_dir():
        raise DataError(
            f"{root}: no such folder; unpack CUB-200-2011 with 'wsol data prepare ARCHIVE OUT', "
            "or paint a data set with 'wsol data synth OUT', and set data.root to it"
        )
    missing = [name for name in (*FILES, "images") if not (root / name).exists()]
    if not missing:
        return
    below = _find_below(root)
    if below is not None and not _lists_images(root):
        raise DataError(f"{root}: no {missing[0]} here, but {below} is a CUB data set: use that folder")
    raise DataError(
        f"{root}: no {', no '.join(missing)}; a CUB data set has {', '.join(FILES)} and the folder images"
    )


def _find_below(root: Path) -> Path | None:
    """The first folder in `root` that holds an images.txt."""
    return next((child for child in sorted(root.iterdir()) if _lists_images(child)), None)


def _lists_images(folder: Path) -> bool:
    """Whether images.txt is here. It may be a pipe or a device, about which `read` complains."""
    path = folder / "images.txt"
    return path.exists() and not path.is_dir()


def _read(
    path: Path,
    form: str,
    parse: Callable[[str], V],
    faults: Faults,
    known: Collection[int] | None = None,
) -> dict[int, CubRow[V]]:
    """The rows of one file by id. form: what a line looks like. known: the ids that may occur."""
    rows: dict[int, CubRow[V]] = {}
    for line, text in numbered_lines(path, faults):
        if not text.strip():
            continue
        try:
            cells = text.split(maxsplit=1)
            if len(cells) < 2:
                raise ValueError(f"expected '{form}', got {clipped(text)}")
            row_id = whole(cells[0])
            if known is not None and row_id not in known:
                raise ValueError(f"unknown image {row_id}: not in images.txt")
            if row_id in rows:
                raise ValueError(f"id {row_id} is listed twice, first in line {rows[row_id].line}")
            rows[row_id] = CubRow(line, parse(cells[1].rstrip()))
        except ValueError as error:
            faults.report(path, line, str(error))
    if not rows:
        faults.report(path, None, f"no rows; expected lines '{form}'")
    return rows


def _class_name(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"class name {clipped(text)} holds unprintable characters")
    return text


def _known_class(names: Collection[int]) -> Callable[[str], int]:
    def parse(text: str) -> int:
        class_id = whole(text)
        if class_id not in names:
            raise ValueError(f"unknown class {class_id}: not in classes.txt")
        return class_id

    return parse


def _box(text: str) -> Box:
    cells = text.split()
    if len(cells) != 4:
        raise ValueError(f"expected 'IMAGE_ID X Y WIDTH HEIGHT', got {len(cells) + 1} columns")
    return box_from_corner(*map(number, cells))


def _split(text: str) -> str:
    if text not in ("0", "1"):
        raise ValueError(f"expected 1 (training) or 0 (test), got {clipped(text)}")
    return "train" if text == "1" else "test"


def _refuse_twins(
    root: Path,
    names: Mapping[int, CubRow[str]],
    images: Mapping[int, CubRow[str]],
    splits: Mapping[int, CubRow[str]],
    faults: Faults,
) -> None:
    """No class name twice, and no image twice: least of all once for training and once for test."""
    seen_names: dict[str, int] = {}
    for row in names.values():
        if row.value in seen_names:
            first = seen_names[row.value]
            faults.report(root / "classes.txt", row.line, f"class {row.value!r} is also in line {first}")
        seen_names.setdefault(row.value, row.line)
    seen: dict[str, int] = {}
    for image_id, row in images.items():
        first = seen.setdefault(row.value, image_id)
        if first != image_id:
            both = {splits[i].value for i in (first, image_id) if i in splits}
            where = ", once for training and once for test" if len(both) == 2 else ""
            reason = f"{row.value} is also in line {images[first].line}{where}"
            faults.report(root / "images.txt", row.line, reason)


def _segmentation_folder(root: Path) -> Path | None:
    """CUB's segmentations come in an archive of their own, unpacked into the data set or beside it."""
    for folder in (root / "segmentations", root.resolve().parent / "segmentations"):
        if folder.is_dir():
            return folder
    return None


def _hierarchy(
    root: Path, version: CubVersion, class_names: tuple[str, ...], faults: Faults
) -> Hierarchy | None:
    table = root / "hierarchy.csv"
    if table.exists():
        try:
            return read_hierarchy_csv(table, class_names)
        except DataError as error:
            faults.add(error)
            return None
    if not set(class_names) <= set(cub_hierarchy(version).names[0]):
        return None
    return cub_hierarchy(version, class_names)
