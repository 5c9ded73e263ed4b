"""What a run is refined from: another run, or what `wsol discover` wrote. It gives maps, perhaps classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wsol.config import Config, Data, Train
from wsol.config_file import config_to_dict
from wsol.data.transforms import View
from wsol.errors import ConfigError, DataError, RunFolderError
from wsol.localization.batch import AnyLocalizer
from wsol.localization.discovered import DiscoveredFolder
from wsol.localization.predictions import Header, Predictions, PredictionsWriter
from wsol.localization.predictor import predict_true_class
from wsol.method_names import method_name
from wsol.records import DataIndex, Sample
from wsol.run import Run
from wsol.runs.files import new_draft_folder, replacing_folder
from wsol.runs.folder import RunFolder
from wsol.runs.ranks import Ranks

MASK_SIDE = 112  # cells of a mask of `wsol discover` that are kept
LARGEST = 224  # side of the refined network's images where the source gives no classes
HELD_OUT = 0.1  # of the training images, where the source held none out


def resized(side: int) -> int:
    """The side before the random crop of training images."""
    return round(side * 9 / 8)


class Source(ABC):
    """Where maps of training images come from.

    method: what made them, in words. side: of the images that it sees. digest: which checkpoint or result.
    knows_classes: whether it tells the classes of the data set apart.
    """

    path: Path
    method: str
    side: int

    @property
    @abstractmethod
    def digest(self) -> str: ...

    @property
    @abstractmethod
    def knows_classes(self) -> bool: ...

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """The section `data` of a config that trains on its images, with their size."""

    @property
    @abstractmethod
    def batch_size(self) -> int:
        """Images of one step, as far as there are so many; a config can set others."""

    @abstractmethod
    def write_maps(
        self, folder: Path, index: DataIndex, samples: Sequence[Sample], config: Config, ranks: Ranks
    ) -> Predictions:
        """Its maps of these images, of the true class where it knows classes. Every rank calls this."""

    @abstractmethod
    def keep_classes(self, folder: RunFolder) -> None:
        """Copy what predicts the classes, where it knows some: the refined run then needs no source."""

    def record(self) -> dict[str, Any]:
        return {
            "path": str(self.path.resolve()),
            "method": self.method,
            "image_size": self.side,
            "digest": self.digest,
            "knows_classes": self.knows_classes,
        }

    def check(self, config: Config, index: DataIndex) -> None:
        """Raise where the refined run cannot take its classes from here."""
        size = config.data.image_size
        if self.knows_classes and size != self.side:
            raise ConfigError(
                f"data.image_size {size}: {self.path} gives the classes and sees images of {self.side}: "
                "leave this out"
            )


class RunSource(Source):
    """A run of a trained or fitted localizer, of a classifier, or a refined one. device: where it runs."""

    def __init__(self, run: Run, device: str) -> None:
        self.run, self.path, self._device = run, run.path, device
        self.method = method_name(run.config)
        self.side = run.config.data.image_size

    @cached_property
    def localizer(self) -> AnyLocalizer:
        return self.run.any_localizer(self._device)

    @property
    def digest(self) -> str:
        return self.run.checkpoint.digest

    @property
    def knows_classes(self) -> bool:
        return self.localizer.knows_classes

    def data(self) -> dict[str, Any]:
        section = config_to_dict(self.run.config.data)
        section["val_share"] = section["val_share"] or HELD_OUT
        if self.knows_classes or self.side <= LARGEST:
            return section
        return section | {"image_size": LARGEST, "resize": resized(LARGEST)}

    @property
    def batch_size(self) -> int:
        return min(Train().batch_size, self.run.config.train.batch_size)

    def check(self, config: Config, index: DataIndex) -> None:
        super().check(config, index)
        if self.knows_classes and index.classes != self.run.classes:
            raise DataError(
                f"{index.root}: not the classes that {self.path} knows ({len(index.classes)}, it knows "
                f"{len(self.run.classes)})"
            )

    def write_maps(
        self, folder: Path, index: DataIndex, samples: Sequence[Sample], config: Config, ranks: Ranks
    ) -> Predictions:
        localizer, info = self.localizer, self.run.checkpoint
        header = Header.of(
            index,
            samples,
            "train",
            View("resize", self.side),
            str(info),
            info.digest,
            cut=localizer.cut,
            knows_classes=localizer.knows_classes,
        )
        return predict_true_class(
            localizer,
            samples,
            folder,
            header,
            ranks,
            batch=self.run.config.train.batch_size,
            workers=config.data.workers,
        )

    def keep_classes(self, folder: RunFolder) -> None:
        if self.knows_classes:
            with replacing_folder(folder.source) as draft:
                self.run.folder.copy_to(draft, self.run.checkpoint_path)


class DiscoveredSource(Source):
    """The masks of `wsol discover`: no classes, and no data set but the photos."""

    method = "DDT"
    knows_classes = False

    def __init__(self, folder: DiscoveredFolder) -> None:
        self.folder, self.path, self.side = folder, folder.path, folder.size

    @property
    def digest(self) -> str:
        return self.folder.digest

    def data(self) -> dict[str, Any]:
        side = min(self.side, LARGEST)
        photos = Data("photos", root=self.folder.photos, image_size=side, resize=resized(side))
        return config_to_dict(photos) | {"on_bad_image": "skip"}  # as `wsol discover` did

    @property
    def batch_size(self) -> int:
        return min(Train().batch_size, self.folder.number)

    def write_maps(
        self, folder: Path, index: DataIndex, samples: Sequence[Sample], config: Config, ranks: Ranks
    ) -> Predictions:
        view = View("resize", self.side)
        header = Header.of(
            index, samples, "train", view, str(self.path), self.digest, cut=0.5, knows_classes=False
        )

        def write() -> None:
            writer = PredictionsWriter(folder, new_draft_folder(folder), header)
            writer.start([s.label for s in samples], [s.size for s in samples])
            for row, sample in enumerate(samples):
                mask = self.folder.mask(sample.name, MASK_SIDE)[None, None]
                rows, nothing = np.array([row]), np.zeros((1, 1), dtype=np.float32)
                writer.write(rows, nothing, mask, np.zeros(1, dtype=bool))
            found = writer.finish()
            if len(found.faults()["constant_maps"]) == len(samples):
                raise DataError(f"{self.path}: no mask of any photo in {index.root}")

        ranks.on_main(write)
        return Predictions(folder)

    def keep_classes(self, folder: RunFolder) -> None:
        """There are none."""


def open_source(path: Path | str, device: str = "cpu") -> Source:
    """The run, or the results of `wsol discover`, in a folder. device: where the run's localizer goes."""
    folder = Path(path)
    if DiscoveredFolder.is_one(folder):
        return DiscoveredSource(DiscoveredFolder.open(folder))
    if not RunFolder(folder).config.is_file():
        raise RunFolderError(f"{folder}: neither a run folder nor what `wsol discover` writes")
    return RunSource(Run(folder), device)


def prepare_maps(
    config: Config, folder: RunFolder, index: DataIndex, samples: Sequence[Sample], ranks: Ranks
) -> Predictions:
    """The source's maps of the training images, in the refined run's own folder: made now, or found there.

    After this the source is no longer needed. Every rank calls this.
    """
    assert config.refine is not None
    assert config.refine.source is not None  # `wsol.train` checked it
    wanted = tuple(s.name for s in samples)
    if ranks.on_main(lambda: folder.guides.is_dir() and Predictions(folder.guides).names == wanted):
        return Predictions(folder.guides)
    source = open_source(config.refine.source, str(ranks.device))
    source.check(config, index)

    def keep() -> None:
        if folder.source_record.is_file():
            before = folder.read_json(folder.source_record).get("digest")
            if before != source.digest:
                raise RunFolderError(f"{source.path} has changed since {folder.path} began: begin a new run")
        source.keep_classes(folder)
        folder.write_json(folder.source_record, source.record())

    ranks.on_main(keep)
    return source.write_maps(folder.guides, index, samples, config, ranks)
