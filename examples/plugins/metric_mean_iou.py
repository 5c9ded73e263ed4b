"""A metric: what each image counts, between 0 and 1. Means, intervals and tables follow from it."""

from wsol.scoring.metrics import Metric, register_metric

register_metric(
    Metric(
        "mean_iou",
        "mean IoU",
        "mean IoU",
        "the overlap of the box of the true class's map with the truth, averaged over the images",
        per_image=lambda judged, at: judged.overlap[:, at],
    )
)
