"""How good the localizer is on the held-out part of the training images, while it trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from wsol.config import Config
from wsol.data.dataset import make_eval_loader
from wsol.data.transforms import View
from wsol.records import Sample
from wsol.registry import PROTOCOLS
from wsol.runs.ranks import Ranks
from wsol.scoring.image import ImageScorer
from wsol.scoring.protocols import HIT, Protocol
from wsol.scoring.sweep import own_overlap, passes

if TYPE_CHECKING:
    from wsol.models.localizer import Localizer


class Validator:
    """Classification and localization accuracy over the images of `val`, which the ranks share unpadded.

    Localization is scored as the config's protocol says, at its fixed threshold, over the images that have a
    box. Only whole numbers are added up, so any number of ranks finds the same figures.
    """

    def __init__(self, samples: Sequence[Sample], config: Config, ranks: Ranks) -> None:
        self.samples = samples
        self._ranks = ranks
        self._protocol: Protocol = PROTOCOLS.create(config.eval.protocol)
        self._view = View(self._protocol.view, config.data.image_size)
        self._loader = make_eval_loader(
            samples,
            self._view,
            batch=config.train.batch_size,
            workers=config.data.workers,
            rank=ranks.rank,
            world=ranks.world,
        )

    @torch.no_grad()
    def figures(self, localizer: Localizer) -> dict[str, float]:
        """`val_top1_cls`, `val_top1_loc`, `val_gt_known_loc` as shares; nothing where nothing is held out."""
        if not self.samples:
            return {}
        self._ranks.take_main_buffers(localizer)  # batch norm's: what a checkpoint holds is what is judged
        localizer.eval()
        counts = {"images": 0.0, "boxed": 0.0, "top1_cls": 0.0, "top1_loc": 0.0, "gt_known_loc": 0.0}
        for batch in self._loader:
            output = localizer(batch.images.to(self._ranks.device))
            maps = localizer.maps_for(output, batch.labels.to(self._ranks.device)).float().cpu().numpy()
            right = (output.logits.argmax(dim=1).cpu() == batch.labels) & ~batch.failed
            counts["images"] += len(right)
            counts["top1_cls"] += int(right.sum())
            for index, raw, is_right in zip(batch.indices.tolist(), maps, right.tolist(), strict=True):
                if self.samples[index].boxes:
                    known, top = self._hits(self.samples[index], raw)
                    counts["boxed"] += 1
                    counts["gt_known_loc"] += known
                    counts["top1_loc"] += top and is_right
        total = self._ranks.sum(counts)
        result = {"val_top1_cls": total["top1_cls"] / total["images"]}
        if total["boxed"]:
            result["val_top1_loc"] = total["top1_loc"] / total["boxed"]
            result["val_gt_known_loc"] = total["gt_known_loc"] / total["boxed"]
        return result

    def _hits(self, sample: Sample, raw: NDArray[np.float32]) -> tuple[bool, bool]:
        """Whether the box of the true class's map counts, for GT-known and for top-1 localization."""
        if sample.size is None:  # its file could not be read: a miss
            return False, False
        protocol = self._protocol
        found = ImageScorer(raw, sample.boxes, sample.size, self._view).find(
            protocol, np.array([protocol.fixed])
        )
        overlap = own_overlap(protocol, found.single, found.best)
        known, top = (bool(passes(overlap, HIT, s)[0]) for s in (protocol.strict_known, protocol.strict_top))
        return known, top
