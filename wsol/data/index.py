"""From a config's data section, or a folder, to the samples of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from tqdm import tqdm

from wsol.config import Data
from wsol.data.faults import Faults
from wsol.data.image_cache import ImageCache, cached_sizes
from wsol.data.split import choose_share
from wsol.errors import ConfigError, DataError
from wsol.records import DataIndex, Sample
from wsol.registry import DATASETS, suggest


def open_dataset(data: Data) -> DataIndex:
    """The data set that the config names, with its held-out part split off."""
    index = _read(data.name, data.root, Faults(), data.options)
    return hold_out(index, data.val_share, data.val_seed)


def read_dataset(root: Path, faults: Faults, kind: str | None = None, **options: Any) -> DataIndex:
    """The data set in an existing folder. Its kind can be detected.

    kind: a registered name; if None, each kind that takes the options is asked whether the folder is one of
    its own, in the order of registration, those that take any folder last. options: what a config may set for
    that kind, such as `annotations` for `folder`; None leaves an option at its default.
    """
    root = Path(root)
    if not root.is_dir():
        raise DataError(
            f"{root}: no such folder; unpack CUB-200-2011 with 'wsol data prepare ARCHIVE OUT', paint a data "
            "set with 'wsol data synth OUT', or give the folder of your own images"
        )
    options = {name: value for name, value in options.items() if value is not None}
    return _read(kind or detect_kind(root, options), root, faults, options)


def detect_kind(root: Path, options: Iterable[str] = ()) -> str:
    """The name of the first kind of data set that takes these options and says that the folder is its own."""
    entries = sorted(DATASETS.entries().values(), key=lambda e: getattr(e.factory, "takes_any_folder", False))
    able = [e for e in entries if set(options) <= set(DATASETS.options(e.name))]
    if not able:
        raise ConfigError(f"no kind of data set takes the options {', '.join(options)} together")
    try:
        for entry in able:
            if entry.factory.detect(root):  # type: ignore[attr-defined]
                return entry.name
    except OSError as error:
        raise DataError.at(error.filename or root, None, f"cannot be read: {error.strerror}") from None
    raise DataError(f"{root}: no data set of a known kind ({', '.join(e.name for e in able)})")


def _read(kind: str, root: Path, faults: Faults, options: Mapping[str, Any]) -> DataIndex:
    takes = DATASETS.options(kind)
    for option in options:
        if option not in takes:
            raise ConfigError(f"dataset {kind!r} takes no option {option!r}{suggest(option, takes)}")
    index = DATASETS.create(kind, **options).read(root, faults)
    _compare_segmentations(index, faults)
    return index


def _compare_segmentations(index: DataIndex, faults: Faults) -> None:
    """A segmentation of another size than its image is a fault: its pixels are not those of the image."""
    pairs = [(s.segmentation_path, s.size) for s in index.samples if s.segmentation_path and s.size]
    for (path, size), own in zip(pairs, cached_sizes(index.root, [p for p, _ in pairs]), strict=True):
        if own is not None and own != size:
            reason = f"segmentation of {own[0]} x {own[1]} for an image of {size[0]} x {size[1]}"
            faults.report(path, None, reason)


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
    """Make sure that every image can be decoded before a run relies on it.

    Files that were decoded before and have not changed are not decoded again; see `wsol.data.image_cache`.

    policy: `stop` raises DataError where an image cannot be read, or where an image for training is byte for
    byte one for test. `skip` leaves those out of *training* and returns why, one line for each; the images
    for test stay, so that the denominator of a score never shrinks.
    """
    bad: dict[str, str] = {}
    digests: dict[bytes, Sample] = {}
    learnt = [s for s in index.samples if s.split != "test"]
    tested = [s for s in index.samples if s.split == "test"]
    found = ImageCache(index.root).inspect([s.path for s in (*tested, *learnt)])
    progress = tqdm(found, "reading images", len(index.samples), unit="img", disable=None)
    for sample, facts in zip((*tested, *learnt), progress, strict=True):
        if isinstance(facts, DataError):
            bad[sample.name] = str(facts)
        elif sample.split == "test":
            digests.setdefault(facts.digest, sample)
        elif facts.digest in digests:
            twin = digests[facts.digest].path
            reason = f"the same image as {twin}, which is for test"
            bad[sample.name] = str(DataError.at(sample.path, None, reason))
    reasons = tuple(bad.values())
    if bad and policy == "stop":
        more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
        raise DataError(
            f"{reasons[0]}{more}; 'wsol data check {index.root}' lists all, "
            "'on_bad_image: skip' trains without them"
        )
    return index.with_samples([s for s in index.samples if s.split == "test" or s.name not in bad]), reasons
