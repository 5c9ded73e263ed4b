"""An evaluated run as pictures need it: predictions, figures, where the images lie. No model is loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wsol.config import Config
from wsol.config_file import load_config
from wsol.data.index import open_dataset
from wsol.errors import DataError, RunFolderError
from wsol.localization.predictions import Predictions
from wsol.registry import suggest
from wsol.scoring.blocks import choose_workers
from wsol.scoring.error_kinds import KINDS, error_kind
from wsol.scoring.frames import to_original, truths_in_frame
from wsol.scoring.protocols import HIT, Protocol, find_protocols
from wsol.scoring.sweep import FoundBoxes, find_boxes, passes

UNREADABLE = "unreadable image"
OUTCOMES = (*KINDS, UNREADABLE)


class WrongPredictions(Predictions):
    """The images whose best class is not the true one, with its map; the other images are passed over."""

    def __reduce__(self) -> tuple[Any, ...]:
        return WrongPredictions, (self.folder,)

    def raw_map(self, row: int) -> NDArray[np.float64]:
        return self.maps[row, 1].astype(np.float64)

    def unreadable(self, row: int) -> bool:
        return bool(self.ranks[row] == 0) or super().unreadable(row)


@dataclass(frozen=True)
class Results:
    """One run, evaluated by one protocol.

    scores: the figures of that protocol. record: all of scores.json. paths: the image files by name.
    """

    name: str
    run: Path
    config: Config
    predictions: Predictions
    protocol: Protocol
    scores: Mapping[str, Any]
    record: Mapping[str, Any]
    paths: Mapping[str, Path]

    @property
    def threshold(self) -> float:
        """The threshold of the protocol's own figures."""
        return float(self.scores["threshold"])

    @cached_property
    def probabilities(self) -> NDArray[np.float32]:
        """(N, C) softmax of the scores."""
        logits = np.nan_to_num(np.asarray(self.predictions.scores, dtype=np.float64))
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        """(N,) the best class of each image, -1 where it could not be read."""
        best = self.predictions.scores.argmax(axis=1)
        unread = [self.predictions.unreadable(row) for row in range(len(self.predictions))]
        return np.where(unread, -1, best)

    def find(self, thresholds: NDArray[np.float64]) -> tuple[FoundBoxes, FoundBoxes]:
        """Boxes and overlaps of every image at ascending thresholds, on the true and on the best class's map.

        Where the best class is the true one these are the same, and found once.
        """
        wanted, protocols = {self.protocol.name: thresholds}, [self.protocol]
        workers = choose_workers(len(self.predictions))
        true, wrong = (
            find_boxes(source, wanted, protocols, workers)[self.protocol.name]
            for source in (self.predictions, WrongPredictions(self.predictions.folder))
        )
        right = (self.predictions.ranks == 0)[:, None]
        top = FoundBoxes(
            thresholds,
            boxes=np.where(right[..., None], true.boxes, wrong.boxes),
            empty=np.where(right, true.empty, wrong.empty),
            single=np.where(right, true.single, wrong.single),
            best=np.where(right, true.best, wrong.best),
        )
        return true, top

    def in_pixels(self, row: int, boxes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(T, 4) boxes of an image in the protocol's frame, as boxes in its original pixels."""
        size, view = self.predictions.size(row), self.predictions.view
        if 0 in size:
            return np.zeros(boxes.shape)
        distinct, back = np.unique(boxes, axis=0, return_inverse=True)
        moved = [to_original(self.protocol, view, box, size).clip(*size) for box in distinct]
        return np.array(moved, dtype=np.float64)[back.reshape(-1)]

    def kinds(self, row: int, boxes: NDArray[np.int64], overlap: NDArray[np.float64]) -> NDArray[np.uint8]:
        """(T,) what became of an image at each threshold, as indices into OUTCOMES.

        boxes, overlap: (T, 4) and (T,) of the true class's map, in the protocol's frame.
        """
        if self.predictions.unreadable(row):
            return np.full(len(boxes), OUTCOMES.index(UNREADABLE), np.uint8)
        right = bool(self.predictions.ranks[row] == 0)
        passed = passes(overlap, HIT, self.protocol.strict_top)
        predictions = self.predictions
        truths = truths_in_frame(
            self.protocol, predictions.view, predictions.truths(row), predictions.size(row)
        )
        cases = np.column_stack([boxes, passed])
        distinct, back = np.unique(cases, axis=0, return_inverse=True)
        found = [
            OUTCOMES.index(error_kind(case[:4], truths, right, bool(case[4]), self.protocol.iou))
            for case in distinct
        ]
        return np.array(found, dtype=np.uint8)[back.reshape(-1)]


def open_results(
    run: Path, protocol: str | None = None, data: Path | None = None, name: str | None = None
) -> Results:
    """The results of a run that `wsol evaluate` has measured.

    protocol: by which protocol; None for the run's own, or the first that it was measured by.
    data: where the data set lies now; None for where it was. name: what to call the run.
    """
    path = run / "config.yaml"
    if not path.is_file():
        raise RunFolderError(f"{run}: not a run folder: it has no config.yaml")
    config = load_config(path, [f"data.root={data}"] if data else [])
    record = read_record(run)
    measured: dict[str, Any] = record.get("protocols", {})
    if not measured:
        raise RunFolderError(f"{run}: not measured yet; run `wsol evaluate {run}` first")
    if protocol is None:
        protocol = config.eval.protocol if config.eval.protocol in measured else next(iter(measured))
    if protocol not in measured:
        raise RunFolderError(
            f"{run}: not measured by protocol {protocol!r}{suggest(protocol, measured)}; "
            f"run `wsol evaluate {run} --protocol {protocol}`"
        )
    scores = measured[protocol]
    (found,) = find_protocols([protocol])
    predictions = Predictions(run / "predictions" / f"test-{found.view}")
    index = open_dataset(config.data)
    predictions.require(index)
    paths = {s.name: s.path for s in index.samples}
    return Results(name or run.resolve().name, run, config, predictions, found, scores, record, paths)


def open_several(
    runs: Sequence[Path], protocol: str | None = None, data: Path | None = None
) -> list[Results]:
    """Several runs to be compared: measured by one protocol on the same images."""
    names = _distinct([run.resolve().name for run in runs], runs)
    first = open_results(runs[0], protocol, data, names[0])
    rest = [
        open_results(run, first.protocol.name, data, name)
        for run, name in zip(runs[1:], names[1:], strict=True)
    ]
    for other in rest:
        if other.predictions.names != first.predictions.names:
            raise DataError(f"{other.run} and {first.run} were measured on different images: not comparable")
    return [first, *rest]


def read_record(run: Path) -> dict[str, Any]:
    """scores.json of a run; {} where it has not been measured."""
    path = run / "scores.json"
    if not path.is_file():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: damaged ({error}); run `wsol evaluate` again") from None
    return record if isinstance(record, dict) else {}


def default_threshold(run: Path, protocol: Protocol) -> float:
    """The threshold chosen on held-out training images where there is one, else the protocol's own."""
    at = read_record(run).get("protocols", {}).get(protocol.name, {}).get("at", {})
    return float(at.get("held_out", {}).get("threshold", protocol.fixed))


def _distinct(names: Sequence[str], runs: Sequence[Path]) -> list[str]:
    """The runs by their folder names, or by their paths where these are shared."""
    return [name if names.count(name) == 1 else str(run) for name, run in zip(names, runs, strict=True)]
