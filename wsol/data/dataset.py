"""Samples as batches of tensors: the torch side of the data room.

Keys are (epoch, index) pairs that the sampler yields, because workers that live through all epochs have no
other way to learn a new epoch number. Images stay uint8 until they are on the model's device.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from wsol.cores import usable_cores
from wsol.data.image import open_rgb, read_image
from wsol.data.transforms import View
from wsol.errors import ConfigError, DataError
from wsol.records import Sample

if TYPE_CHECKING:
    from wsol.config import Flip
    from wsol.data.augment import Augment, CropFlip

Key = tuple[int, int]  # (epoch, index)
LabelPixels = Callable[[int], np.ndarray]  # from the index of a sample to uint8 (R, R)


class Batch(NamedTuple):
    """images: uint8 (N, 3, S, S), or (N, 10, 3, S, S) of ten crops. labels, indices: int64 (N,).
    failed: bool (N,). pixels: uint8 (N, S, S) the labels of the pixels, where a head learns from these.

    `indices` are positions among the samples that the loader was given. Where `failed`, the image could not
    be read and is black: such an image counts as a miss, and the batch keeps its size.
    """

    images: torch.Tensor
    labels: torch.Tensor
    indices: torch.Tensor
    failed: torch.Tensor
    pixels: torch.Tensor | None = None


# image (S, S, 3) or (10, S, S, 3), label, index, failed, and perhaps the labels of the pixels (S, S)
Item = tuple[np.ndarray, int, int, bool] | tuple[np.ndarray, int, int, bool, np.ndarray]


class ImageDataset(Dataset[Item]):
    """One image for each key, read by the one decoder and given the shape by `load`."""

    def __init__(
        self, samples: Sequence[Sample], shape: tuple[int, ...], load: Callable[[str, Key], np.ndarray]
    ) -> None:
        # Plain lists instead of records, so that forked workers copy less memory.
        self.paths = [str(s.path) for s in samples]
        self._labels = [s.label for s in samples]
        self._shape = shape
        self._load = load

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, key: Key) -> Item:
        index = key[1]
        try:
            image, failed = self._load(self.paths[index], key), False
        except DataError:
            image, failed = np.zeros(self._shape, np.uint8), True
        return image, self._labels[index], index, failed


class GuidedDataset(ImageDataset):
    """The same with labels for the pixels of each image, cropped and flipped as the image is.

    label_pixels: from the index of a sample to the labels (R, R) of its resized square.
    """

    def __init__(
        self,
        samples: Sequence[Sample],
        shape: tuple[int, ...],
        load: Callable[[str, Key], np.ndarray],
        augment: CropFlip,
        label_pixels: LabelPixels,
    ) -> None:
        super().__init__(samples, shape, load)
        self._augment = augment
        self._label_pixels = label_pixels

    def __getitem__(self, key: Key) -> Item:
        image, label, index, failed, *_ = super().__getitem__(key)
        return image, label, index, failed, self._augment.cut_out(self._label_pixels(index), key)


def collate(items: Sequence[Item]) -> Batch:
    """One batch of the items. Copied by NumPy on this thread alone: torch would wake its thread pool for it,
    which on busy cores costs more than decoding the images."""
    images, labels, indices, failed, *pixels = zip(*items, strict=True)
    *crops, height, width, channels = images[0].shape
    stacked = np.empty((len(images), *crops, channels, height, width), np.uint8)
    for target, image in zip(stacked, images, strict=True):
        target[:] = np.moveaxis(image, -1, -3)
    return Batch(
        torch.from_numpy(stacked),
        torch.tensor(labels),
        torch.tensor(indices),
        torch.tensor(failed),
        torch.from_numpy(np.stack(pixels[0])) if pixels else None,
    )


def load_training(path: str, key: Key, augment: Augment, resize: int) -> np.ndarray:
    return augment(open_rgb(path, at_least=resize), key)


def load_test(path: str, key: Key, view: View) -> np.ndarray:
    return view.apply(read_image(path))


def load_ten_crops(path: str, key: Key, view: View) -> np.ndarray:
    return view.ten_crops(read_image(path))


class EpochSampler(Sampler[list[Key]]):
    """The batches of one training epoch: a permutation of the samples that (seed, epoch) alone decides.

    Each global batch of `batch` samples is split evenly over the ranks; the last one is dropped where it is
    incomplete. `set_epoch(epoch, start_step)` begins in the middle of an epoch: the remaining batches are
    those that an uninterrupted epoch would have had.
    """

    def __init__(
        self,
        num: int,
        batch: int,
        seed: int,
        epoch: int = 0,
        rank: int = 0,
        world: int = 1,
        start_step: int = 0,
    ) -> None:
        if batch > num:
            raise ConfigError(
                f"train.batch_size {batch} is more than the {num} training images: set it to {num} or less"
            )
        if batch % world:
            raise ConfigError(f"batch_size {batch} cannot be split evenly over {world} processes")
        self.num, self.batch, self.seed = num, batch, seed
        self.rank, self.world = rank, world
        self.set_epoch(epoch, start_step)

    @property
    def steps(self) -> int:
        """Batches in a whole epoch."""
        return self.num // self.batch

    def set_epoch(self, epoch: int, start_step: int = 0) -> None:
        if not 0 <= start_step <= self.steps:
            raise ValueError(f"start_step {start_step} is outside 0 to {self.steps}")
        self.epoch, self.start_step = epoch, start_step

    def __len__(self) -> int:
        return self.steps - self.start_step

    def __iter__(self) -> Iterator[list[Key]]:
        epoch = self.epoch
        order = np.random.default_rng((self.seed, epoch)).permutation(self.num).tolist()
        for step in range(self.start_step, self.steps):
            batch = order[step * self.batch : (step + 1) * self.batch]
            yield [(epoch, index) for index in batch[self.rank :: self.world]]


class EvalSampler(Sampler[list[Key]]):
    """All samples once, in order. Ranks take whole batches in turn: nothing is padded, and a batch holds the
    same images with any number of ranks, so that rounding is the same too."""

    def __init__(self, num: int, batch: int, rank: int = 0, world: int = 1) -> None:
        self.num, self.batch = num, batch
        self.rank, self.world = rank, world

    def __len__(self) -> int:
        return len(range(self.rank * self.batch, self.num, self.batch * self.world))

    def __iter__(self) -> Iterator[list[Key]]:
        for start in range(self.rank * self.batch, self.num, self.batch * self.world):
            yield [(0, index) for index in range(start, min(start + self.batch, self.num))]


class TrainLoader(DataLoader[Item]):
    """A loader that raises DataError, naming the file, where an image could not be read."""

    dataset: ImageDataset

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override]
        for batch in super().__iter__():
            for index in batch.indices[batch.failed].tolist():
                path = self.dataset.paths[index]
                read_image(path)  # raises the error with its cause, in this process
                raise DataError.at(path, None, "this image could not be read at first; start again")
            yield batch


def make_train_loader(
    samples: Sequence[Sample],
    sampler: EpochSampler,
    *,
    resize: int,
    side: int,
    seed: int,
    workers: int = 0,
    pad: int = 0,
    flip: Flip = "left-right",
    label_pixels: LabelPixels | None = None,
) -> TrainLoader:
    """Augmented training batches. Call `sampler.set_epoch` before each epoch.

    label_pixels: where a head learns from the labels of pixels, those (resize, resize) of each sample.
    """
    from wsol.data.augment import CropFlip  # slow to import, and not needed for evaluation

    augment = CropFlip(resize, side, seed, pad, flip)
    load, shape = partial(load_training, augment=augment, resize=resize), (side, side, 3)
    if label_pixels is None:
        dataset = ImageDataset(samples, shape, load)
    else:
        dataset = GuidedDataset(samples, shape, load, augment, label_pixels)
    return TrainLoader(dataset, batch_sampler=sampler, **_settings(workers))


def make_eval_loader(
    samples: Sequence[Sample],
    view: View,
    *,
    batch: int,
    workers: int = 0,
    rank: int = 0,
    world: int = 1,
    ten_crops: bool = False,
) -> DataLoader[Item]:
    """Test-time batches in the order of the samples; see `Batch.failed` for images that cannot be read.

    ten_crops: each image as its ten crops, for classes alone.
    """
    shape = (view.side, view.side, 3)
    if ten_crops:
        dataset = ImageDataset(samples, (10, *shape), partial(load_ten_crops, view=view))
    else:
        dataset = ImageDataset(samples, shape, partial(load_test, view=view))
    sampler = EvalSampler(len(samples), batch, rank, world)
    return DataLoader(dataset, batch_sampler=sampler, **_settings(workers))


def _settings(workers: int) -> dict[str, Any]:
    """What both loaders share. More workers than cores would only take turns, so there are never more."""
    workers = min(workers, usable_cores())
    return {
        "collate_fn": collate,
        "num_workers": workers,
        "persistent_workers": workers > 0,
        "pin_memory": torch.cuda.is_available(),
        "worker_init_fn": _start_worker,
        # A generator of its own: the loader would otherwise draw from, and so move, the global one.
        "generator": torch.Generator().manual_seed(0),
    }


def _start_worker(worker: int) -> None:
    cv2.setNumThreads(0)  # workers are the parallelism
    os.setpgrp()  # Ctrl-C and torchrun signal the whole group, and only the main process should save and end
