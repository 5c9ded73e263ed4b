"""Runs a localizer over the images of a split and writes its predictions: maps and classes by one test image,
or classes alone by ten crops."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from wsol.data.dataset import Batch, make_eval_loader
from wsol.data.transforms import View
from wsol.freed_memory import freed_memory_kept
from wsol.localization.batch import AnyLocalizer, classify_crops, look_at
from wsol.localization.predictions import Header, Predictions, PredictionsWriter
from wsol.records import Sample
from wsol.runs.files import new_draft_folder
from wsol.runs.ranks import Ranks


def predict(
    localizer: AnyLocalizer,
    samples: Sequence[Sample],
    folder: Path,
    header: Header,
    ranks: Ranks,
    *,
    batch: int,
    workers: int,
    voted: NDArray[np.int64] | None = None,
) -> Predictions:
    """Predictions of `samples` in `folder`, one forward pass each. `header` says what they are of.

    voted: (N,) the best class of each image by its ten crops, where these were made: then the map of that
    class is kept too.

    The ranks take batches in turn and write their own rows: nothing is padded, and every batch holds the same
    images on any rank, so the numbers do not depend on how many ranks there are.
    """

    def write(writer: PredictionsWriter, part: Batch) -> None:
        rows = part.indices.numpy()

        def true_and_best(logits: Tensor) -> Tensor:
            kept = [part.labels.to(logits.device), logits.argmax(dim=1)]
            if voted is not None:
                kept.append(torch.from_numpy(voted[rows]).to(logits.device))
            return torch.stack(kept, dim=1)

        seen = look_at(localizer, part.images, true_and_best)
        writer.write(rows, seen.logits, seen.maps, part.failed.numpy(), seen.masks)

    return _predict(localizer, samples, folder, header, ranks, write, batch=batch, workers=workers)


def predict_by_ten_crops(
    localizer: AnyLocalizer,
    samples: Sequence[Sample],
    folder: Path,
    header: Header,
    ranks: Ranks,
    *,
    batch: int,
    workers: int,
) -> Predictions:
    """The classes of `samples` by the mean softmax of ten crops, ten forward passes each, without maps."""

    def write(writer: PredictionsWriter, part: Batch) -> None:
        probabilities = classify_crops(localizer, part.images)
        writer.write(part.indices.numpy(), probabilities, None, part.failed.numpy())

    return _predict(localizer, samples, folder, header, ranks, write, batch=batch, workers=workers)


def _predict(
    localizer: AnyLocalizer,
    samples: Sequence[Sample],
    folder: Path,
    header: Header,
    ranks: Ranks,
    write: Callable[[PredictionsWriter, Batch], None],
    *,
    batch: int,
    workers: int,
) -> Predictions:
    draft = ranks.on_main(lambda: new_draft_folder(folder, parents=True))
    writer = PredictionsWriter(folder, draft, header)
    try:
        return _fill(writer, localizer, samples, ranks, write, batch=batch, workers=workers)
    except BaseException:
        if ranks.is_main:  # a full disk gets its space back
            shutil.rmtree(draft, ignore_errors=True)
        raise


def _fill(
    writer: PredictionsWriter,
    localizer: AnyLocalizer,
    samples: Sequence[Sample],
    ranks: Ranks,
    write: Callable[[PredictionsWriter, Batch], None],
    *,
    batch: int,
    workers: int,
) -> Predictions:
    folder, header = writer.folder, writer.header
    ranks.on_main(lambda: writer.start([s.label for s in samples], [s.size for s in samples]))
    loader: Any = make_eval_loader(
        samples,
        View(header.view, header.side),
        batch=batch,
        workers=workers,
        rank=ranks.rank,
        world=ranks.world,
        ten_crops=header.classes_by == "ten crops",
    )
    localizer.eval()
    bar = tqdm(
        total=len(samples), unit=" images", desc=folder.name, file=sys.stderr, disable=None, leave=False
    )
    with bar, freed_memory_kept():
        for part in loader:
            write(writer, part)
            bar.update(len(part.indices) * ranks.world)
    ranks.gather(None)  # every rank has written
    ranks.on_main(lambda: writer.finish() and None)
    return Predictions(folder)
