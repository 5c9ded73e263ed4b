"""Which family and which order a species belongs to.

DANet learns coarse levels beside the fine one, so it needs for every class its ancestors. They cannot be read
off the class names (CUB's 'Sparrow', 'Grosbeak' and 'Catbird' each span families); they come from a table.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np

from wsol.data.faults import Faults
from wsol.data.textfile import numbered_lines, whole
from wsol.errors import DataError

CubVersion: TypeAlias = Literal["danet", "corrected"]
CSV_COLUMNS = ("class_id", "class_name", "family", "order")


@dataclass(frozen=True)
class Hierarchy:
    """A tree over the classes of a data set, from fine to coarse.

    levels: names of the levels, such as ("species", "family", "order").
    names: for each level the names of its labels; `names[0]` are the class names.
    parents: for each level but the coarsest, the label one level up of each of its labels.

    Labels are contiguous from 0 on every level, and every label above the first level has a child.
    """

    levels: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    parents: tuple[tuple[int, ...], ...]

    @classmethod
    def from_table(cls, levels: Sequence[str], rows: Iterable[Sequence[str]]) -> Hierarchy:
        """Number the names of a table in the order in which they first appear.

        rows: one row for each class, one name for each level. Raises ValueError where a class appears twice
        or a name has two parents.
        """
        numbers: list[dict[str, int]] = [{} for _ in levels]
        parents: list[dict[int, int]] = [{} for _ in levels[1:]]
        for row in rows:
            if row[0] in numbers[0]:
                raise ValueError(f"{levels[0]} {row[0]!r} is listed twice")
            labels = [known.setdefault(name, len(known)) for known, name in zip(numbers, row, strict=True)]
            for i, up in enumerate(parents):
                if up.setdefault(labels[i], labels[i + 1]) != labels[i + 1]:
                    other = list(numbers[i + 1])[up[labels[i]]]
                    raise ValueError(
                        f"{levels[i]} {row[i]!r} is put in {levels[i + 1]} {row[i + 1]!r}, "
                        f"but earlier in {other!r}"
                    )
        return cls(
            tuple(levels),
            tuple(tuple(known) for known in numbers),
            tuple(tuple(up.values()) for up in parents),
        )

    def num(self, level: str) -> int:
        """How many labels a level has."""
        return len(self.names[self._depth(level)])

    def labels(self, level: str) -> np.ndarray:
        """(classes,) int64: for each class its label at `level`."""
        labels = np.arange(len(self.names[0]), dtype=np.int64)
        for up in self.parents[: self._depth(level)]:
            labels = np.asarray(up, dtype=np.int64)[labels]
        return labels

    def subset(self, classes: Sequence[str | int]) -> Hierarchy:
        """The tree over a selection of classes, numbered anew in the order given.

        classes: class names, or the ids that class names begin with (1 for '001.Black_footed_Albatross').
        Raises KeyError for a class that is not in the tree.
        """
        known: dict[str | int, int] = {}
        for label, name in enumerate(self.names[0]):
            known[name] = label
            if number := re.match(r"(\d+)\.", name):
                known[int(number[1])] = label
        columns = [
            [names[label] for label in self.labels(level)]
            for level, names in zip(self.levels, self.names, strict=True)
        ]
        picks = [known[c] for c in classes]
        return Hierarchy.from_table(self.levels, ([col[i] for col in columns] for i in picks))

    def _depth(self, level: str) -> int:
        if level not in self.levels:
            raise ValueError(f"no level {level!r}: this hierarchy has {', '.join(self.levels)}")
        return self.levels.index(level)


def cub_hierarchy(version: CubVersion, class_names: Sequence[str] | None = None) -> Hierarchy:
    """Species, family and order of CUB-200-2011's classes, or of a selection of them.

    version: `danet` groups the 200 species into 37 families and 11 orders as DANet's lists do. Two of those
    orders mix birds that are not related, and their names say so: Suliformes+Piciformes (cormorants and the
    frigatebird with woodpeckers) and Apodiformes+Coraciiformes (hummingbirds with kingfishers). `corrected`
    splits both, which makes 13 orders, and keeps the families.

    Family names are today's for DANet's groups: Passerellidae for the New World sparrows, Laridae for gulls
    and terns together, Icteriidae for the Yellow-breasted Chat. Tree_Sparrow stays with House_Sparrow in
    Passeridae, where DANet puts it.
    """
    if version not in get_args(CubVersion):
        raise ValueError(f"no hierarchy {version!r}: choose from {', '.join(get_args(CubVersion))}")
    with resources.as_file(resources.files("wsol.data") / "cub_hierarchy.csv") as path:
        columns = ("class_id", "class_name", "family", f"order_{version}")
        return _select(_read(path, columns), class_names, "the CUB hierarchy")


def read_hierarchy_csv(path: Path, class_names: Sequence[str] | None = None) -> Hierarchy:
    """The hierarchy in a file with the columns class_id, class_name, family and order.

    class_names: the classes to keep, in the order of their labels; all of them if None.
    Raises DataError, `file:line: reason`, where the file is not such a table or lacks a class.
    """
    return _select(_read(Path(path), CSV_COLUMNS), class_names, path)


def _select(tree: Hierarchy, class_names: Sequence[str] | None, source: Path | str) -> Hierarchy:
    if class_names is None:
        return tree
    missing = [name for name in class_names if name not in tree.names[0]]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError.at(source, None, f"no row for class {missing[0]!r}{more}")
    return tree.subset(class_names)


def _read(path: Path, columns: Sequence[str]) -> Hierarchy:
    line = 1

    def counted() -> Iterator[str]:
        nonlocal line
        for line, text in numbered_lines(path, Faults()):  # noqa: B007 (read where errors are reported)
            yield text

    def rows() -> Iterator[list[str]]:
        reader = csv.reader(counted(), strict=True)
        header = next(reader, [])
        missing = [c for c in columns if c not in header]
        if missing:
            raise ValueError(f"no column {missing[0]!r} in the header {','.join(header)!r}")
        picks = [header.index(c) for c in columns]
        for row in filter(None, reader):
            if len(row) != len(header):
                raise ValueError(f"{len(row)} cells where the header has {len(header)}")
            number, *names = (row[i].strip() for i in picks)
            whole(number)
            if not all(names):
                raise ValueError(f"empty {columns[1 + names.index('')]}")
            yield names

    try:
        tree = Hierarchy.from_table(("species", *(c.split("_")[0] for c in columns[2:])), rows())
        if not tree.names[0]:
            raise ValueError("no classes")
    except (ValueError, csv.Error) as error:
        raise DataError.at(path, line, str(error)) from None
    return tree
