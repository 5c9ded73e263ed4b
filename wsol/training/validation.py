"""How good the localizer is on the held-out part of the training images, while it trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from wsol.config import Config
from wsol.data.dataset import make_eval_loader
from wsol.data.transforms import View
from wsol.records import Sample
from wsol.training.distributed import Ranks

if TYPE_CHECKING:
    from wsol.models.localizer import Localizer


class Validator:
    """Counts hits over the images of `val`, which the ranks share without padding.

    Only whole numbers are added up, so that any number of ranks finds the same figures.
    """

    def __init__(self, samples: Sequence[Sample], config: Config, ranks: Ranks) -> None:
        self.samples = samples
        self._ranks = ranks
        self._loader = make_eval_loader(
            samples,
            View("resize", config.data.image_size),
            batch=config.train.batch_size,
            workers=config.data.workers,
            rank=ranks.rank,
            world=ranks.world,
        )

    @torch.no_grad()
    def figures(self, localizer: Localizer) -> dict[str, float]:
        """`val_top1_cls` and the like, as shares of the images; nothing where no image is held out."""
        if not self.samples:
            return {}
        localizer.eval()
        hits = {"top1_cls": 0.0}
        for batch in self._loader:
            output = localizer(batch.images.to(self._ranks.device))
            top1 = output.logits.argmax(dim=1).cpu()
            hits["top1_cls"] += int(((top1 == batch.labels) & ~batch.failed).sum())
        return {f"val_{name}": count / len(self.samples) for name, count in self._ranks.sum(hits).items()}
