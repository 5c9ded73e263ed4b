"""How good the localizer is on the held-out part of the training images, while it trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wsol.config import Config
from wsol.data.dataset import make_eval_loader
from wsol.data.transforms import View
from wsol.localization.batch import look_at
from wsol.records import Sample
from wsol.runs.ranks import Ranks
from wsol.scoring.image import ImageScorer
from wsol.scoring.judge import Judge
from wsol.scoring.protocols import find_protocols

if TYPE_CHECKING:
    from wsol.models.localizer import Localizer


class Validator:
    """Classification and localization accuracy over the `val` images, split over the ranks without padding.

    Localization is scored as the config's protocol says, at its fixed threshold, over the images that have a
    box. Classes are those of one test image and figures are means over images, whatever the protocol does in
    an evaluation. Only whole numbers are added up, so any number of ranks finds the same figures.
    """

    def __init__(self, samples: Sequence[Sample], config: Config, ranks: Ranks) -> None:
        self.samples = samples
        self._ranks = ranks
        self._judge = Judge(find_protocols(config.eval.protocol)[0])
        self._view = View(self._judge.protocol.view, config.data.image_size)
        self._loader = make_eval_loader(
            samples,
            self._view,
            batch=config.train.batch_size,
            workers=config.data.workers,
            rank=ranks.rank,
            world=ranks.world,
        )

    def figures(self, localizer: Localizer) -> dict[str, float]:
        """`val_top1_cls`, `val_top1_loc`, `val_gt_known_loc` as shares; nothing where nothing is held out.

        Of a head that knows no classes, the last one alone.
        """
        if not self.samples:
            return {}
        self._ranks.take_main_buffers(localizer)  # batch norm's: what a checkpoint holds is what is judged
        localizer.eval()
        counts = {"images": 0.0, "boxed": 0.0, "top1_cls": 0.0, "top1_loc": 0.0, "gt_known_loc": 0.0}
        for batch in self._loader:

            def true_class(logits: Tensor, labels: Tensor = batch.labels) -> Tensor:
                return labels.to(logits.device)[:, None]

            seen = look_at(localizer, batch.images, true_class)
            right = (seen.logits.argmax(axis=1) == batch.labels.numpy()) & ~batch.failed.numpy()
            counts["images"] += len(right)
            counts["top1_cls"] += int(right.sum())
            rows = zip(batch.indices.tolist(), seen.maps[:, 0], right.tolist(), strict=True)
            for index, raw, is_right in rows:
                if self.samples[index].boxes:
                    known, top = self._hits(self.samples[index], raw, is_right)
                    counts["boxed"] += 1
                    counts["gt_known_loc"] += known
                    counts["top1_loc"] += top
        total = self._ranks.sum(counts)
        counted = {"top1_cls": "images", "top1_loc": "boxed", "gt_known_loc": "boxed"}
        told = counted if localizer.knows_classes else {"gt_known_loc": "boxed"}
        return {f"val_{name}": total[name] / total[of] for name, of in told.items() if total[of]}

    def _hits(self, sample: Sample, raw: NDArray[np.float32], right_class: bool) -> tuple[bool, bool]:
        """Whether the image counts, for GT-known and for top-1 localization."""
        if sample.size is None:  # its file could not be read: a miss
            return False, False
        protocol = self._judge.protocol
        fixed = np.array([protocol.extraction.fixed])
        found = ImageScorer(raw, sample.boxes, sample.size, self._view).find(protocol, fixed)
        rank = 0 if right_class else 1
        return bool(self._judge.known(found)[0]), bool(self._judge.top(found, rank, 1)[0])
