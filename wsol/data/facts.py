"""What there is to know of a data set: counts, sizes, boxes, segmentations, hierarchy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wsol.records import SPLITS, DataIndex


def describe_dataset(index: DataIndex) -> Iterator[tuple[str, str]]:
    """The facts of a data set as (name, value)."""
    yield "data set", str(index.root)
    yield "classes", f"{len(index.classes):,}"
    for split in SPLITS:
        samples = index.split(split)
        if samples:
            each = np.bincount([s.label for s in samples], minlength=len(index.classes))
            yield split, f"{len(samples):,} images, {each.min()} to {each.max()} of a class"
    sizes = np.array([s.size for s in index.samples if s.size is not None])
    if len(sizes):
        words = ("smallest", "median", "largest")
        values = (sizes.min(0), np.median(sizes, 0).astype(int), sizes.max(0))
        pairs = zip(words, values, strict=True)
        yield "image size", ", ".join(f"{word} {w} x {h}" for word, (w, h) in pairs)
    unread = len(index.samples) - len(sizes)
    if unread:
        yield "unreadable", f"{unread:,} images; 'wsol data check {index.root}' says why"
    shares = [b.area / (s.size[0] * s.size[1]) for s in index.samples if s.size for b in s.boxes]
    if shares:
        low, middle, high = np.percentile(shares, (5, 50, 95))
        yield (
            "boxes",
            f"{len(shares):,}; they cover {middle:.0%} of the image in the median, "
            f"from {low:.0%} to {high:.0%} in nine of ten",
        )
    segmented = sum(s.segmentation_path is not None for s in index.samples)
    if segmented:
        yield "segmentations", f"{segmented:,}"
    if index.hierarchy is not None:
        levels = (f"{index.hierarchy.num(level)} {level}" for level in index.hierarchy.levels)
        yield "hierarchy", ", ".join(levels)
    yield "digest", index.digest()[:16]
