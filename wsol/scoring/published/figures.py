"""What the figures of published tables are called that `wsol evaluate` does not measure."""

from __future__ import annotations

from wsol.scoring.metrics import Metric, headline_metrics

_VOC_CLASSES = (
    *("aero", "bike", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("table", "dog", "horse", "mbike", "person", "plant", "sheep", "sofa", "train", "tv"),
)
_IOUS = "mean of the average precisions at IoU 0.5 to 0.95"

_FIGURES = (
    Metric("map", "mAP", "mean average precision", "mean over classes of the average precision at IoU 0.5"),
    Metric("ap", "AP", "average precision", _IOUS),
    Metric("ap50", "AP50", "average precision at IoU 0.5", "average precision at IoU 0.5"),
    Metric("ap75", "AP75", "average precision at IoU 0.75", "average precision at IoU 0.75"),
    Metric("ap_small", "AP small", "average precision, small objects", f"{_IOUS}, small objects"),
    Metric("ap_medium", "AP medium", "average precision, medium objects", f"{_IOUS}, medium objects"),
    Metric("ap_large", "AP large", "average precision, large objects", f"{_IOUS}, large objects"),
    Metric("miou", "mIoU", "mean IoU", "mean over classes of the IoU of pixels"),
    Metric("macc", "mAcc", "mean accuracy", "mean over classes of the share of right pixels"),
    *(
        Metric(f"ap_{name}", name, f"average precision, {name}", f"average precision of the class {name}")
        for name in _VOC_CLASSES
    ),
)


def comparable_metrics() -> dict[str, Metric]:
    """Every figure that a comparison may show, by its key: those of summaries, then the published ones."""
    return {**headline_metrics(), **{metric.key: metric for metric in _FIGURES}}
