"""What a detector finds in the images of a data set, and pycocotools' judgement of it."""

from __future__ import annotations

import contextlib
import io
import math
from typing import Any

import torch
from boxes import Boxes
from pycocotools.cocoeval import COCOeval
from torch import nn

#: The paper's six figures for COCO, in the order of COCOeval.stats.
FIGURES = ("AP", "AP50", "AP75", "AP small", "AP medium", "AP large")

Results = list[dict[str, Any]]
Figures = dict[str, float]


@torch.no_grad()
def detect(model: nn.Module, data: Boxes, device: str = "cpu") -> Results:
    """The boxes found in all images, as COCO's list of results."""
    model.to(device).eval()
    results = []
    for position, image_id in enumerate(data.ids):
        (found,) = model([data[position][0].to(device)])
        columns = (found[key].tolist() for key in ("boxes", "labels", "scores"))
        for (x0, y0, x1, y1), label, score in zip(*columns, strict=True):
            results.append(
                {
                    "image_id": image_id,
                    "category_id": data.categories[label - 1],
                    "bbox": [x0, y0, x1 - x0, y1 - y0],
                    "score": score,
                }
            )
    return results


def judge(data: Boxes, results: Results) -> tuple[Figures, Figures]:
    """The paper's six figures, and the AP at IoU 0.5 of each class: percent, NaN for what the data lacks."""
    if not results:  # pycocotools cannot read an empty list
        return dict.fromkeys(FIGURES, 0.0), dict.fromkeys(data.names, 0.0)
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(data.coco, data.coco.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    at_half = evaluation.eval["precision"][0, :, :, 0, -1].mean(axis=0)  # over the recalls; all sizes
    figures = dict(zip(FIGURES, map(_percent, evaluation.stats[:6]), strict=True))
    return figures, dict(zip(data.names, map(_percent, at_half), strict=True))


def _percent(share: float) -> float:
    return 100 * float(share) if share >= 0 else math.nan
