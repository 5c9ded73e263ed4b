"""Runs a localizer over the images of a split, once, and writes its predictions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from wsol.data.dataset import make_eval_loader
from wsol.data.transforms import View
from wsol.freed_memory import freed_memory_kept
from wsol.localization.batch import AnyLocalizer, look_at
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
) -> Predictions:
    """Predictions of `samples` in `folder`, one forward pass each. `header` says what they are of.

    The ranks take batches in turn and write their own rows: nothing is padded, and every batch holds the same
    images on any rank, so the numbers do not depend on how many ranks there are.
    """
    draft = ranks.on_main(lambda: new_draft_folder(folder, parents=True))
    writer = PredictionsWriter(folder, draft, header)
    ranks.on_main(lambda: writer.start([s.label for s in samples], [s.size for s in samples]))
    loader: Any = make_eval_loader(
        samples,
        View(header.view, header.side),
        batch=batch,
        workers=workers,
        rank=ranks.rank,
        world=ranks.world,
    )
    localizer.eval()
    bar = tqdm(
        total=len(samples), unit=" images", desc=folder.name, file=sys.stderr, disable=None, leave=False
    )
    with bar, freed_memory_kept():
        for part in loader:

            def true_and_best(logits: Tensor, labels: Tensor = part.labels) -> Tensor:
                return torch.stack([labels.to(logits.device), logits.argmax(dim=1)], dim=1)

            seen = look_at(localizer, part.images, true_and_best)
            writer.write(part.indices.numpy(), seen.logits, seen.maps, part.failed.numpy(), seen.masks)
            bar.update(len(part.indices) * ranks.world)
    ranks.gather(None)  # every rank has written
    ranks.on_main(lambda: writer.finish() and None)
    return Predictions(folder)
