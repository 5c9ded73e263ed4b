"""`wsol.paint_birds` and `wsol.open_dataset`: data sets, painted or read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wsol.config import Config, Data
from wsol.data.faults import Faults
from wsol.data.index import open_dataset as open_configured
from wsol.data.index import read_dataset
from wsol.records import DataIndex


def paint_birds(
    out: Path | str,
    *,
    species: int = 12,
    train: int = 40,
    test: int = 20,
    size: int = 160,
    seed: int = 0,
    progress: bool = False,
    processes: int = 1,
) -> Path:
    """Paint a data set of birds into the new folder `out`, with exact boxes and segmentations; returns it.

    Args:
        out: a folder that does not exist yet.
        species: how many classes, from 2 to 200.
        train: training images of each class.
        test: test images of each class.
        size: long side of the images in pixels.
        seed: the same arguments and seed give the same bytes.
        progress: show a bar on a terminal.
        processes: how many paint side by side; the same bytes. More than one only where the script that calls
            this begins with `if __name__ == "__main__":`.

    >>> import wsol
    >>> birds = wsol.paint_birds("six_birds", species=2, train=2, test=1, size=64)
    >>> len(wsol.open_dataset(birds).samples)
    6
    """
    from wsol.data.synthetic.paint import make_dataset

    return make_dataset(
        Path(out),
        species=species,
        train=train,
        test=test,
        size=size,
        seed=seed,
        progress=progress,
        processes=processes,
    )


def open_dataset(source: Config | Data | Path | str, kind: str | None = None, **options: Any) -> DataIndex:
    """A data set: its samples with boxes and splits, its classes, and the hierarchy over them if it has one.

    Args:
        source: a folder, or a config whose `data` section names one (then with its held-out part split off).
        kind: for a folder, its layout; see `wsol list datasets`. By default it is detected.
        options: of that kind, such as `annotations="boxes.csv"`.

    >>> import wsol
    >>> index = wsol.open_dataset("birds")
    >>> len(index.classes), len(index.split("train")), index.samples[0].boxes[0].area > 0
    (2, 12, True)
    """
    if isinstance(source, Config):
        return open_configured(source.data)
    if isinstance(source, Data):
        return open_configured(source)
    return read_dataset(Path(source), Faults(), kind, **options)
