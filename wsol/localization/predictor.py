"""Runs a localizer over the images of a split, once, and writes its predictions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch
from tqdm import tqdm

from wsol.data.dataset import make_eval_loader
from wsol.data.transforms import View
from wsol.localization.predictions import Header, Predictions, PredictionsWriter
from wsol.records import DataIndex, Sample

if TYPE_CHECKING:
    from wsol.models.localizer import Localizer

T = TypeVar("T")


class Team(Protocol):
    """The processes that predict together, as `wsol.runs.ranks.Ranks` is one."""

    @property
    def rank(self) -> int: ...
    @property
    def world(self) -> int: ...
    def on_main(self, act: Callable[[], T]) -> T: ...
    def gather(self, value: T) -> list[T]: ...


@torch.inference_mode()
def predict(
    localizer: Localizer,
    index: DataIndex,
    samples: Sequence[Sample],
    folder: Path,
    view: View,
    team: Team,
    *,
    split: str,
    batch: int,
    workers: int,
    origin: str = "",
) -> Predictions:
    """Predictions of `samples` in `folder`, one forward pass each.

    The processes of the team take batches in turn and write their own rows: nothing is padded, and every
    batch has the same company whoever computes it, so the numbers do not depend on how many there are.
    """
    device = next(localizer.parameters()).device
    writer = PredictionsWriter(folder, Header.of(index, samples, split, view, origin))
    team.on_main(lambda: writer.start([s.label for s in samples], [s.size for s in samples]))
    loader: Any = make_eval_loader(
        samples, view, batch=batch, workers=workers, rank=team.rank, world=team.world
    )
    localizer.eval()
    bar = tqdm(
        total=len(samples), unit=" images", desc=folder.name, file=sys.stderr, disable=None, leave=False
    )
    with bar:
        for part in loader:
            output = localizer(part.images.to(device, non_blocking=True))
            labels = torch.stack([part.labels.to(device), output.logits.argmax(dim=1)], dim=1)
            masks = class_masks(localizer, len(index.classes))
            writer.write(
                part.indices.numpy(),
                output.logits.float().cpu().numpy(),
                localizer.maps_for(output, labels).float().cpu().numpy(),
                part.failed.numpy(),
                None if masks is None else masks.float().cpu().numpy(),
            )
            bar.update(len(part.indices) * team.world)
    team.gather(None)  # everyone has written
    team.on_main(lambda: writer.finish() and None)
    return Predictions(folder)


def class_masks(localizer: Localizer, classes: int) -> torch.Tensor | None:
    """The attention mask (N, C) over the class channels: the last of the masks that has C channels."""
    masks = [m for m in localizer.masks() if m.shape[1] == classes]
    return masks[-1] if masks else None
