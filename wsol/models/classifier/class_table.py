"""Which of a classifier's classes stands for which class of a data set, and what to do where none does."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from wsol.class_names import find_label
from wsol.errors import ConfigError, DataError
from wsol.models.classifier.localizer import ClassifierLocalizer
from wsol.records import LocalizerOutput
from wsol.registry import suggest
from wsol.runs.files import read_regular


def read_class_names(path: Path) -> tuple[str, ...]:
    """The names of a classifier's classes: one on each line, in the order of its scores."""
    names = tuple(line.strip() for line in _read(path).splitlines() if line.strip())
    if not names:
        raise DataError(f"{path}: no class names; expected one on each line")
    return names


def read_class_table(path: Path) -> dict[str, str]:
    """A table with two columns: a class of the data set, and the classifier's (name or number) for it."""
    table: dict[str, str] = {}
    for number, row in enumerate(csv.reader(_read(path).splitlines()), start=1):
        if not row:
            continue
        if len(row) != 2:
            raise DataError.at(
                path, number, f"expected 2 columns (data set's class, classifier's), got {len(row)}"
            )
        if row[0].strip() in table:
            raise DataError.at(path, number, f"the class {row[0].strip()!r} is listed twice")
        table[row[0].strip()] = row[1].strip()
    return table


def _read(path: Path) -> str:
    try:
        return read_regular(path).decode("utf-8-sig")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text in UTF-8"
        raise DataError(f"{path}: cannot be read: {reason}") from None


def match_classes(wanted: Sequence[str], own: Sequence[str], table: Mapping[str, str]) -> dict[int, int]:
    """The classifier's label of each class of the data set that it knows, by the data set's label.

    wanted: classes of the data set. own: the classifier's. table: what names do not tell, by a name in
    `wanted`. Names are compared as people read them: `017.Blue_Jay` is `blue jay`.

    >>> match_classes(["001.Blue_Jay", "002.Crow"], ["crow", "car", "blue jay"], {})
    {0: 2, 1: 0}
    >>> match_classes(["001.Blue_Jay", "002.Crow"], ["jay", "crow"], {"Blue Jay": "jay"})
    {0: 0, 1: 1}

    Raises:
        ConfigError: the table names a class that is not there.
    """
    given: dict[int, int] = {}
    for name, target in table.items():
        label, own_label = find_label(name, wanted), find_label(target, own)
        if label is None:
            raise ConfigError(f"class table: the data set has no class {name!r}{suggest(name, wanted)}")
        if own_label is None:
            raise ConfigError(f"class table: the classifier has no class {target!r}{suggest(target, own)}")
        given[label] = own_label
    for label, name in enumerate(wanted):
        own_label = None if name.isdecimal() else find_label(name, own)  # digits would be read as a number
        if own_label is not None:
            given.setdefault(label, own_label)
    return {label: given[label] for label in sorted(given)}


class MappedClasses:
    """A classifier that answers in the classes of a data set. labels: its own label for each of them."""

    cut = None
    knows_classes = True

    def __init__(self, localizer: ClassifierLocalizer, labels: Sequence[int]) -> None:
        self.inner = localizer
        self.mean = localizer.mean
        self._labels = torch.tensor(list(labels), device=localizer.mean.device)

    def __call__(self, images: Tensor) -> LocalizerOutput:
        output = self.inner(images)
        return output._replace(logits=output.logits[:, self._labels])

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        return self.inner.maps_for(output, self._labels[labels])

    def masks(self) -> list[Tensor]:
        return []

    def eval(self) -> MappedClasses:
        return self


class OwnClass:
    """A classifier that does not know the classes of a data set: every map is of its own best class.

    number: classes of the data set; none of them is predicted, so their scores are 0. known: how many of them
    the classifier knows.
    """

    cut = None
    knows_classes = False

    def __init__(self, localizer: ClassifierLocalizer, number: int, known: int = 0) -> None:
        self.inner = localizer
        self.known = known
        self.mean = localizer.mean
        self.number = number

    def __call__(self, images: Tensor) -> LocalizerOutput:
        output = self.inner(images)
        none = output.logits.new_zeros(len(output.logits), self.number)
        return output._replace(logits=none, extras={"own": output})

    def maps_for(self, output: LocalizerOutput, labels: Tensor) -> Tensor:
        own: LocalizerOutput = output.extras["own"]
        one = self.inner.maps_for(own, own.logits.argmax(dim=1))
        shape = (*labels.shape, *one.shape[1:])
        return one.reshape(len(labels), *[1] * (labels.ndim - 1), *one.shape[1:]).expand(shape)

    def masks(self) -> list[Tensor]:
        return []

    def eval(self) -> OwnClass:
        return self
