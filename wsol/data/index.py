"""From a config's data section to the samples of a run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Literal

from tqdm import tqdm

from wsol.config import Data
from wsol.data.image import ImageFacts, in_threads, inspect_image
from wsol.data.split import choose_share
from wsol.errors import DataError
from wsol.records import DataIndex, Sample
from wsol.registry import DATASETS


def open_dataset(data: Data) -> DataIndex:
    """The data set that the config names, with its held-out part split off."""
    index = DATASETS.create(data.name, root=data.root, **data.options)
    return hold_out(index, data.val_share, data.val_seed)


def hold_out(index: DataIndex, share: float, seed: int) -> DataIndex:
    """Move a share of the *training* images of each class to `val`, where thresholds are chosen."""
    by_class: dict[int, list[str]] = defaultdict(list)
    for sample in index.split("train"):
        by_class[sample.label].append(sample.name)
    held = {name for names in by_class.values() for name in choose_share(names, share, seed)}
    return index.with_samples(
        [replace(s, split="val") if s.split == "train" and s.name in held else s for s in index.samples]
    )


def refuse_bad_images(index: DataIndex, policy: Literal["stop", "skip"]) -> tuple[DataIndex, tuple[str, ...]]:
    """Decode every image before a run relies on them.

    policy: `stop` raises DataError where an image cannot be read, or where an image for training is byte for
    byte one for test. `skip` leaves those out of *training* and returns why, one line for each; the images
    for test stay, so that the denominator of a score never shrinks.
    """
    bad: dict[str, str] = {}
    digests: dict[bytes, Sample] = {}
    learnt = [s for s in index.samples if s.split != "test"]
    tested = [s for s in index.samples if s.split == "test"]
    found = in_threads(_try_inspect, (s.path for s in (*tested, *learnt)))
    progress = tqdm(found, "reading images", len(index.samples), unit="img", disable=None)
    for sample, facts in zip((*tested, *learnt), progress, strict=True):
        if isinstance(facts, DataError):
            bad[sample.name] = str(facts)
        elif sample.split == "test":
            digests.setdefault(facts.digest, sample)
        elif facts.digest in digests:
            twin = digests[facts.digest].path
            bad[sample.name] = f"{sample.path}: the same image as {twin}, which is for test"
    reasons = tuple(bad.values())
    if bad and policy == "stop":
        more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
        raise DataError(
            f"{reasons[0]}{more}; 'wsol data check {index.root}' lists all, "
            "'on_bad_image: skip' trains without them"
        )
    return index.with_samples([s for s in index.samples if s.split == "test" or s.name not in bad]), reasons


def _try_inspect(path: Path) -> ImageFacts | DataError:
    try:
        return inspect_image(path)
    except DataError as error:
        return error
