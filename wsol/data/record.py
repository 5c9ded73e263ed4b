"""What a run keeps of its data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from wsol.data.hierarchy import Hierarchy
from wsol.errors import RunFolderError
from wsol.records import SPLITS, DataIndex
from wsol.runs.folder import RunFolder


@dataclass(frozen=True)
class DataRecord:
    """What a run keeps of its data set, so that its localizer works without the data."""

    digest: str  # of the data set as it lies on disk
    classes: tuple[str, ...]
    hierarchy: Hierarchy | None
    counts: Mapping[str, int]  # images of each split that are used
    skipped: tuple[str, ...] = ()  # why each of the other images was left out of training
    boxed: int | None = None  # test images with a box; None in runs of version 0.1

    @classmethod
    def of(cls, index: DataIndex, digest: str, skipped: tuple[str, ...] = ()) -> DataRecord:
        counts = {split: len(index.split(split)) for split in SPLITS}
        boxed = sum(bool(s.boxes) for s in index.split("test"))
        return cls(digest, index.classes, index.hierarchy, counts, skipped, boxed)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, folder: RunFolder) -> DataRecord:
        """The record in a run folder. RunFolderError where it is missing or damaged."""
        record = folder.read_json(folder.data)
        try:
            return cls.from_json(record)
        except (KeyError, TypeError, IndexError):
            raise RunFolderError(f"{folder.data}: not what a run writes") from None

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> DataRecord:
        tree = record["hierarchy"]
        hierarchy = tree and Hierarchy(
            tuple(tree["levels"]),
            tuple(tuple(names) for names in tree["names"]),
            tuple(tuple(up) for up in tree["parents"]),
        )
        return cls(
            digest=record["digest"],
            classes=tuple(record["classes"]),
            hierarchy=hierarchy,
            counts=record["counts"],
            skipped=tuple(record["skipped"]),
            boxed=record.get("boxed"),
        )
