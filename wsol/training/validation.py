"""How good the model is on the held-out part of the training images, while it trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wsol.config import Config
from wsol.data.dataset import Batch, make_eval_loader
from wsol.data.transforms import View
from wsol.localization.batch import classify, look_at
from wsol.models.localizer import Localizer
from wsol.records import Sample
from wsol.runs.ranks import Ranks
from wsol.scoring.image import ImageScorer
from wsol.scoring.judge import Judge
from wsol.scoring.protocols import find_protocols

if TYPE_CHECKING:
    from wsol.models.trainable import Trainable


class Validator:
    """Classification and localization accuracy over the `val` images, split over the ranks without padding.

    Localization is scored as the config's protocol says, at its fixed threshold, over the images that have a
    box, where the model makes maps. Classes are those of one test image and figures are means over images,
    whatever the protocol does in an evaluation. Only whole numbers are added up, so any number of ranks finds
    the same figures.
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

    def figures(self, model: Trainable) -> dict[str, float]:
        """`val_top1_cls`, `val_top1_loc`, `val_gt_known_loc` as shares; nothing where nothing is held out.

        A model without maps has the first of them alone, a head that knows no classes the last.
        """
        if not self.samples:
            return {}
        self._ranks.take_main_buffers(model)  # batch norm's: what a checkpoint holds is what is judged
        model.eval()
        counts = {"images": 0.0, "boxed": 0.0, "top1_cls": 0.0, "top1_loc": 0.0, "gt_known_loc": 0.0}
        for batch in self._loader:
            logits, maps = self._look(model, batch)
            right = (logits.argmax(axis=1) == batch.labels.numpy()) & ~batch.failed.numpy()
            counts["images"] += len(right)
            counts["top1_cls"] += int(right.sum())
            for index, raw, is_right in zip(batch.indices.tolist(), maps, right.tolist(), strict=True):
                if raw is not None and self.samples[index].boxes:
                    known, top = self._hits(self.samples[index], raw, is_right)
                    counts["boxed"] += 1
                    counts["gt_known_loc"] += known
                    counts["top1_loc"] += top
        total = self._ranks.sum(counts)
        counted = {"top1_cls": "images", "top1_loc": "boxed", "gt_known_loc": "boxed"}
        told = counted if model.knows_classes else {"gt_known_loc": "boxed"}
        return {f"val_{name}": total[name] / total[of] for name, of in told.items() if total[of]}

    @staticmethod
    def _look(
        model: Trainable, batch: Batch
    ) -> tuple[NDArray[np.float32], Sequence[NDArray[np.float32] | None]]:
        """Logits (N, C), and of each image the map of its true class; None where the model makes no maps."""
        if not isinstance(model, Localizer):
            return classify(model, batch.images), [None] * len(batch.labels)

        def true_class(logits: Tensor) -> Tensor:
            return batch.labels.to(logits.device)[:, None]

        seen = look_at(model, batch.images, true_class)
        return seen.logits, list(seen.maps[:, 0])

    def _hits(self, sample: Sample, raw: NDArray[np.float32], right_class: bool) -> tuple[bool, bool]:
        """Whether the image counts, for GT-known and for top-1 localization."""
        if sample.size is None:  # its file could not be read: a miss
            return False, False
        protocol = self._judge.protocol
        fixed = np.array([protocol.extraction.fixed])
        found = ImageScorer(raw, sample.boxes, sample.size, self._view).find(protocol, fixed)
        rank = 0 if right_class else 1
        return bool(self._judge.known(found)[0]), bool(self._judge.top(found, rank, 1)[0])
