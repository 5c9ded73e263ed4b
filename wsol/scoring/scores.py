"""What an evaluation found: a frozen record for each protocol, and one that holds them all.

Both go to JSON and come back equal. The layout of `scores.json` has a format number; files of the format
before (without a number) open as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wsol.errors import DataError
from wsol.localization.predictions import ClassesBy
from wsol.runs.files import read_regular
from wsol.scoring.means import Mean
from wsol.scoring.metrics import KINDS, Kind
from wsol.scoring.tables import error_rows, summary_rows, threshold_rows
from wsol.text_table import html_table, text_table

FORMAT = 2
FAULTS = ("unreadable_images", "not_finite_maps", "constant_maps")

Figures = Mapping[str, float]
Intervals = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class ScoresAt:
    """The figures at one threshold, in percent, with their 95 % bootstrap intervals.

    num_images, num_boxes: of the held-out training images that chose the threshold, where some did.
    """

    threshold: float
    figures: Figures
    intervals: Intervals
    num_images: int | None = None
    num_boxes: int | None = None

    def to_json(self) -> dict[str, Any]:
        counts = {"num_images": self.num_images, "num_boxes": self.num_boxes}
        return {
            "threshold": self.threshold,
            **self.figures,
            "intervals": _listed(self.intervals),
            **{key: value for key, value in counts.items() if value is not None},
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ScoresAt:
        rest = dict(record)
        threshold, intervals = rest.pop("threshold"), rest.pop("intervals")
        images, boxes = rest.pop("num_images", None), rest.pop("num_boxes", None)
        return cls(threshold, rest, _paired(intervals), images, boxes)


@dataclass(frozen=True)
class ClassScores:
    """The figures of the images of one class, at the protocol's own threshold."""

    name: str
    num_images: int
    figures: Figures

    def to_json(self) -> dict[str, Any]:
        return {"class": self.name, "num_images": self.num_images, **self.figures}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ClassScores:
        rest = dict(record)
        return cls(rest.pop("class"), rest.pop("num_images"), rest)


@dataclass(frozen=True)
class Scores:
    """Every figure of one protocol over one set of images, in percent: `scores["gt_known_loc"]`.

    threshold_kind, threshold: what the protocol itself reports at, and so the headline `figures`.
    by_iou: MaxBoxAccV2 at each of its IoU levels. at: the figures at every kind of threshold.
    errors: how many images fall to each error kind. no_foreground: images without any foreground.
    centre_box: figures of a box in the middle of every image, without looking at it.
    num_segmentations: images that PxAP looked at. cut: where the head cuts its raw maps itself; this stands
    for the thresholds of every kind, and figures are `at` the kind `fixed` alone. None where thresholds cut.
    classes_by, mean: what ranked the classes, and whether figures are means over images or over classes.
    """

    protocol: str
    version: int
    num_images: int
    view: str
    normalize: str
    threshold_kind: Kind
    threshold: float
    figures: Figures
    intervals: Intervals
    by_iou: Figures
    at: Mapping[Kind, ScoresAt]
    errors: Mapping[str, int]
    per_class: tuple[ClassScores, ...]
    no_foreground: int
    centre_box: Figures
    num_segmentations: int = 0
    cut: float | None = None
    classes_by: ClassesBy = "view"
    mean: Mean = "images"

    def __getitem__(self, figure: str) -> float:
        return self.figures[figure]

    def __contains__(self, figure: object) -> bool:
        return figure in self.figures

    def at_kind(self, kind: Kind | None) -> Figures:
        """The figures at a kind of threshold, with those that need none; None for the protocol's own.

        A head's own cut stands for every kind.
        """
        if kind is None or self.cut is not None:
            return self.figures
        if kind not in self.at:
            raise DataError(f"no figures at the threshold {kind!r}, only at {', '.join(self.at)}")
        return {**self.figures, **self.at[kind].figures}

    def default_threshold(self) -> float:
        """The threshold for pictures and photos: chosen on held-out images where some were, else the fixed
        one. Never the oracle's, which has seen the test boxes."""
        return self.at["held_out" if "held_out" in self.at else "fixed"].threshold

    def to_json(self) -> dict[str, Any]:
        return {
            "protocol": self.protocol,
            "version": self.version,
            "num_images": self.num_images,
            "view": self.view,
            "classes_by": self.classes_by,
            "mean": self.mean,
            "normalize": self.normalize,
            "threshold_kind": self.threshold_kind,
            "threshold": self.threshold,
            **self.figures,
            "max_box_acc_v2_by_iou": dict(self.by_iou),
            "intervals": _listed(self.intervals),
            "at": {kind: at.to_json() for kind, at in self.at.items()},
            "errors": dict(self.errors),
            "per_class": [row.to_json() for row in self.per_class],
            "no_foreground": self.no_foreground,
            "num_segmentations": self.num_segmentations,
            "centre_box": dict(self.centre_box),
            "cut": self.cut,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Scores:
        rest = dict(record)
        return cls(
            protocol=rest.pop("protocol"),
            version=rest.pop("version", 1),
            num_images=rest.pop("num_images"),
            view=rest.pop("view"),
            classes_by=rest.pop("classes_by", "view"),
            mean=rest.pop("mean", "images"),
            normalize=rest.pop("normalize"),
            threshold_kind=rest.pop("threshold_kind"),
            threshold=rest.pop("threshold"),
            by_iou=rest.pop("max_box_acc_v2_by_iou"),
            intervals=_paired(rest.pop("intervals")),
            at={kind: ScoresAt.from_json(at) for kind, at in rest.pop("at").items() if kind in KINDS},
            errors=rest.pop("errors"),
            per_class=tuple(map(ClassScores.from_json, rest.pop("per_class"))),
            no_foreground=rest.pop("no_foreground"),
            num_segmentations=rest.pop("num_segmentations", 0),
            cut=rest.pop("cut", None),
            centre_box={k: v for k, v in rest.pop("centre_box").items() if isinstance(v, (int, float))},
            figures=rest,
        )

    def __str__(self) -> str:
        return text_table(summary_rows({self.protocol: self}))

    def _repr_html_(self) -> str:
        caption = f"{self.num_images:,} images, figures in percent [95 % bootstrap interval]"
        return html_table(summary_rows({self.protocol: self}), caption)


@dataclass(frozen=True)
class Evaluation(Mapping[str, Scores]):
    """The `Scores` of every protocol by its name, and what they were measured on: all of `scores.json`.

    origin: the run, or the folder of maps. checkpoint: in words; checkpoint_digest: its SHA-256, '' where
    there is none. data, data_digest: the data set. test_digest: what identifies the images that were scored
    and their truth, whichever other images were held out; '' in old files. held_out_from: whether the images
    that chose thresholds took part in training. faults: names of images by what is wrong with them; each of
    them was counted.
    """

    scores: Mapping[str, Scores]
    num_images: int
    origin: str = ""
    checkpoint: str = ""
    checkpoint_digest: str = ""
    data: str = ""
    data_digest: str = ""
    test_digest: str = ""
    split: str = "test"
    images_without_boxes: int = 0
    held_out_from: str = ""
    faults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __getitem__(self, protocol: str) -> Scores:
        return self.scores[protocol]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def with_earlier(self, earlier: Evaluation) -> Evaluation:
        """These scores, with those of an earlier evaluation under other protocols.

        Only where both are of one checkpoint and the same images; else these scores alone.
        """
        about = ("checkpoint", "checkpoint_digest", "data_digest", "split", "num_images", "held_out_from")
        same = all(getattr(self, name) == getattr(earlier, name) for name in about)
        others = {name: scores for name, scores in earlier.scores.items() if name not in self.scores}
        if not same or not self.checkpoint_digest or not others:
            return self
        faults = {
            kind: tuple(dict.fromkeys((*earlier.faults.get(kind, ()), *self.faults.get(kind, ()))))
            for kind in FAULTS
        }
        return replace(self, scores={**earlier.scores, **self.scores}, faults=faults)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "run": self.origin,
            "checkpoint": self.checkpoint,
            "checkpoint_digest": self.checkpoint_digest,
            "data": self.data,
            "data_digest": self.data_digest,
            "test_digest": self.test_digest,
            "split": self.split,
            "num_images": self.num_images,
            "images_without_boxes": self.images_without_boxes,
            "held_out_from": self.held_out_from,
            **{kind: list(self.faults.get(kind, ())) for kind in FAULTS},
            "protocols": {name: scores.to_json() for name, scores in self.scores.items()},
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any], path: Path | str = "scores") -> Evaluation:
        """What `to_json` gave; DataError where it is something else."""
        try:
            if record.get("format", 1) > FORMAT:
                raise DataError(f"{path}: format {record['format']} is newer than this toolkit; update it")
            return cls(
                scores={name: Scores.from_json(r) for name, r in record["protocols"].items()},
                num_images=record["num_images"],
                origin=record.get("run", ""),
                checkpoint=record.get("checkpoint", ""),
                checkpoint_digest=record.get("checkpoint_digest", ""),
                data=record.get("data", ""),
                data_digest=record.get("data_digest", ""),
                test_digest=record.get("test_digest", ""),
                split=record.get("split", "test"),
                images_without_boxes=record.get("images_without_boxes", 0),
                held_out_from=record.get("held_out_from", ""),
                faults={kind: tuple(record.get(kind, ())) for kind in FAULTS},
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"{path}: not what `wsol evaluate` writes ({error!r}); evaluate again") from None

    @classmethod
    def read(cls, path: Path) -> Evaluation:
        """The evaluation in a JSON file."""
        try:
            record = json.loads(read_regular(path))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: damaged ({error}); evaluate again") from None
        return cls.from_json(record, path)

    def __str__(self) -> str:
        return "\n\n".join(
            [
                text_table(summary_rows(self)),
                text_table(threshold_rows(self), left=2),
                text_table(error_rows(self)),
            ]
        )

    def _repr_html_(self) -> str:
        caption = (
            f"{self.origin}: {self.num_images:,} {self.split} images, figures in percent [95 % interval]"
        )
        return html_table(summary_rows(self), caption)


def _listed(intervals: Intervals) -> dict[str, list[float]]:
    return {name: list(ends) for name, ends in intervals.items()}


def _paired(intervals: Mapping[str, Any]) -> Intervals:
    return {name: (float(low), float(high)) for name, (low, high) in intervals.items()}
