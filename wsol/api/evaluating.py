"""`wsol.evaluate`: predictions of the test images, and every figure of every protocol."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wsol.api.classifying import start_run
from wsol.api.sharing import start_from_pack
from wsol.data.index import hold_out, open_dataset
from wsol.data.loader_faults import loader_faults_named
from wsol.data.transforms import View, ViewKind
from wsol.errors import ConfigError, DataError
from wsol.localization.classifier_finder import ClassifierFinder
from wsol.localization.predictions import Header, Predictions
from wsol.localization.predictor import predict, predict_by_ten_crops
from wsol.models.classifier.class_table import OwnClass
from wsol.notices import note
from wsol.records import DataIndex, Sample
from wsol.run import Run, Split
from wsol.runs.files import write_json, write_text
from wsol.runs.ranks import Ranks
from wsol.scoring.blocks import choose_workers
from wsol.scoring.protocols import VIEWS, Protocol, find_protocols
from wsol.scoring.score import hold_out_thresholds, score_maps
from wsol.scoring.scores import Evaluation, Scores

if TYPE_CHECKING:
    from wsol.localization.batch import AnyLocalizer


def evaluate(
    run: Run | ClassifierFinder | Path | str,
    protocols: Sequence[str] | str | None = None,
    *,
    split: Split = "test",
    data: Path | str | None = None,
    out: Path | str | None = None,
    normalize: str | None = None,
    held_out: float = 0.1,
    reuse: bool = False,
    batch: int | None = None,
    workers: int | None = None,
    device: str = "auto",
) -> Evaluation:
    """Measure a trained localizer on the test images; returns the scores by protocol, also kept in the run.

    Each image passes the network once for each way of preparing it that the protocols use (resize, crop), and
    ten times more where a protocol ranks classes by ten crops. The predictions stay in the run folder, so
    that pictures and reports need no model. Earlier scores of the same checkpoint under other protocols stay
    in the run.

    Args:
        run: a run, its folder, a pack, or what `wsol.from_classifier` gave.
        protocols: names, or "all"; None for the protocol of the run's config.
        split: "val" measures the training images that the run held out (`data.val_share`), for choices that
            must not see the test images; these scores are returned, and the run's own stay as they are.
        data: where the data set is now, if it was moved. For a pack or a classifier, the data set.
        out: for a pack or a classifier, the folder of the new run; None for `runs/<name>`, or
            `runs/<name>-<method>`.
        normalize: another normalisation of the maps: minmax, max, pas or ivr.
        held_out: share of the training images that choose a threshold, if the run held none out.
        reuse: score the predictions of an earlier evaluation, without the model.
        batch: images at a time; None for the batch of training.
        workers: processes that score; None to choose by the number of images.
        device: auto, cpu or cuda.

    >>> import wsol
    >>> scores = wsol.evaluate("runs/demo", ["gpca", "wsoleval-v2"], device="cpu")
    >>> list(scores), scores.num_images
    (['gpca', 'wsoleval-v2'], 8)
    >>> 0 <= scores["gpca"]["gt_known_loc"] <= 100
    True
    """
    if not 0 <= held_out < 1:
        raise ConfigError(f"held_out {held_out} is outside 0 to 1")
    for name, value in (("batch", batch), ("workers", workers)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} {value} is less than 1")
    asked = find_protocols(protocols or [], normalize)  # an unknown name ends here
    if isinstance(run, ClassifierFinder) and data is None:
        raise ConfigError("data: a classifier has no data set of its own: say where one is (--data)")
    ranks = Ranks.join(device)
    try:
        opened = _open(run, data, out, ranks)
        opened.predicted(split)  # a split that the run does not have ends here
        wanted = asked or find_protocols(opened.config.eval.protocol, normalize)
        cut = None if opened.config.classifier else opened.config.model.head.cut
        if cut is not None and any("+" in p.name for p in wanted):
            raise ConfigError(
                f"{opened.path}: its head cuts the raw map itself, at {cut:g}: no normalisation applies"
            )
        try:
            ranks.on_main(opened.folder.claim_predictions)
            work = _Evaluating.of(opened, ranks, device, reuse, held_out, batch, split)
            with loader_faults_named():
                return work.evaluate(wanted, workers)
        finally:
            opened.folder.release()
    finally:
        ranks.leave()


def _open(
    run: Run | ClassifierFinder | Path | str, data: Path | str | None, out: Path | str | None, ranks: Ranks
) -> Run:
    """The run that is meant; for a classifier or a pack, a new one on this data set."""
    if isinstance(run, ClassifierFinder):
        assert data is not None
        started = Run(ranks.on_main(lambda: start_run(run, data, out)))
        started.use_classifier(run.built)
        return started
    if isinstance(run, Run):
        opened = run if data is None else Run(run.path, data)
    else:
        opened = Run(run, data)
    if opened.folder.is_pack:
        return Run(ranks.on_main(lambda: start_from_pack(opened, data, out)))
    if out is not None:
        raise ConfigError(f"out: {opened.path} keeps its own figures; it is for a pack or a classifier")
    return opened


@dataclass(frozen=True)
class _Evaluating:
    """One evaluation; `localizer` is None where earlier predictions are used."""

    run: Run
    ranks: Ranks
    index: DataIndex
    localizer: AnyLocalizer | None
    held_out: float
    batch: int
    split: Split

    @classmethod
    def of(
        cls,
        run: Run,
        ranks: Ranks,
        device: str,
        reuse: bool,
        held_out: float,
        batch: int | None,
        split: Split,
    ) -> _Evaluating:
        index = ranks.on_main(lambda: open_dataset(run.config.data))
        _refuse_unfit(run, index, split)
        localizer = None if reuse else run.any_localizer(str(ranks.device) if device == "auto" else device)
        if isinstance(localizer, OwnClass):
            note(
                f"the classifier knows {localizer.known} of the {localizer.number} classes of the data set: "
                "every box is of its own best class, and GT-known alone is measured (own class); a class "
                "table can name the others"
            )
        return cls(run, ranks, index, localizer, held_out, batch or run.config.train.batch_size, split)

    def evaluate(self, protocols: Sequence[Protocol], workers: int | None) -> Evaluation:
        views = [view for view in VIEWS if any(p.view == view for p in protocols)]
        by_crops = [p.name for p in protocols if p.classes_by == "ten crops"]
        crops = self.ten_crops(by_crops) if self.knows_classes(views[0]) else None
        measured = {view: self.predictions(self.measured, view, crops) for view in views}
        choose = self.split == "test"
        held = {view: self.predictions("held_out", view) for view in views if choose}
        _require_one_checkpoint([p for p in (*measured.values(), *held.values(), crops) if p is not None])
        evaluation = self.ranks.on_main(lambda: self.score(protocols, measured, held, workers))
        if self.split != "test":
            return evaluation
        kept = self.ranks.on_main(lambda: keep(self.run, evaluation))
        self.run.__dict__["scores"] = kept
        return evaluation

    def knows_classes(self, view: ViewKind) -> bool:
        """Whether classes are predicted, by the localizer or in earlier predictions."""
        if self.localizer is not None:
            return self.localizer.knows_classes
        return self.earlier(self.run.folder.predictions_of(self.measured, view)).header.knows_classes

    def ten_crops(self, asked_by: Sequence[str]) -> Predictions | None:
        """The classes of the images by ten crops: made now where a protocol asks for them.

        Else those of an earlier evaluation of the same checkpoint, if there are some.
        """
        folder, config = self.run.folder.ten_crops_of(self.measured), self.run.config
        if self.localizer is None:
            return self.earlier(folder) if asked_by else None
        if not asked_by:
            return self.ranks.on_main(lambda: self.earlier_crops(folder))
        self.ranks.on_main(
            lambda: note(f"{', '.join(asked_by)}: classes by ten crops, ten more passes of each image")
        )
        samples, info = self.samples(self.measured), self.run.checkpoint
        view = View("crop", config.data.image_size)
        header = Header.of(self.index, samples, self.measured, view, str(info), info.digest, "ten crops")
        return predict_by_ten_crops(
            self.localizer,
            samples,
            folder,
            header,
            self.ranks,
            batch=self.batch,
            workers=config.data.workers,
        )

    def earlier_crops(self, folder: Path) -> Predictions | None:
        """The ten crops of this checkpoint and these images, None where there are none."""
        try:
            crops = self.earlier(folder)
        except DataError:
            return None
        return crops if crops.header.checkpoint == self.run.checkpoint.digest else None

    def earlier(self, folder: Path) -> Predictions:
        """Predictions of an earlier evaluation. DataError where there are none of this data set."""
        there = Predictions(folder)
        there.require(self.index)
        return there

    @property
    def measured(self) -> str:
        """`test` or `held_out`: the predictions that are measured."""
        return self.run.predicted(self.split)

    def predictions(self, kind: str, view: ViewKind, crops: Predictions | None = None) -> Predictions | None:
        """Those of one kind (`test`, `held_out`) and view: made now, or the earlier ones.

        None for images that would only choose a threshold, where there are none or the head has its own cut.
        """
        folder, data = self.run.folder.predictions_of(kind, view), self.run.config.data
        choosing = kind != self.measured
        if self.localizer is None:
            return None if choosing and not folder.is_dir() else self.earlier(folder)
        samples, localizer = self.samples(kind), self.localizer
        if choosing and (not samples or localizer.cut is not None):
            return None
        info = self.run.checkpoint
        view_used = View(view, data.image_size)
        header = Header.of(
            self.index,
            samples,
            kind,
            view_used,
            str(info),
            info.digest,
            cut=localizer.cut,
            knows_classes=localizer.knows_classes,
        )
        return predict(
            localizer,
            samples,
            folder,
            header,
            self.ranks,
            batch=self.batch,
            workers=data.workers,
            voted=None if crops is None else crops.scores.argmax(axis=1),
        )

    def samples(self, kind: str) -> tuple[Sample, ...]:
        """The test images; or those with boxes that the run held out, or else of its training images."""
        if kind == "test":
            return self.index.split("test")
        seed = self.run.config.data.val_seed
        samples = self.index.split("val") or hold_out(self.index, self.held_out, seed).split("val")
        return tuple(s for s in samples if s.boxes)

    def held_out_from(self, unseen: bool) -> str:
        """What the images that chose thresholds were to the model."""
        if self.run.config.classifier is not None:
            return "no image was trained on"
        return "images held out of training" if unseen else "images that the model has seen"

    def score(
        self,
        protocols: Sequence[Protocol],
        measured: Mapping[ViewKind, Predictions | None],
        held: Mapping[ViewKind, Predictions | None],
        workers: int | None,
    ) -> Evaluation:
        results: dict[str, Scores] = {}
        faults: dict[str, dict[str, None]] = {}  # names by kind, each once for all views
        whole = [test for test in measured.values() if test is not None]  # never empty: see `_refuse_unfit`
        for test in whole:
            view = test.view.kind
            wanted = [p for p in protocols if p.view == view]
            processes = workers or choose_workers(len(test))
            part = held.get(view)
            chosen = hold_out_thresholds(part, wanted, processes) if part is not None else {}
            for classes_by in dict.fromkeys(p.classes_by for p in wanted):
                own = [p for p in wanted if p.classes_by == classes_by]
                source = self.run.predictions(self.measured, view, classes_by)
                results |= score_maps(source, own, chosen, processes)
            for kind, names in test.faults().items():
                faults.setdefault(kind, {}).update(dict.fromkeys(names))
        header, unseen = whole[-1].header, bool(self.index.split("val"))
        return Evaluation(
            scores={p.name: results[p.name] for p in protocols},
            num_images=len(header.names),
            origin=self.run.name,
            checkpoint=header.origin,
            checkpoint_digest=header.checkpoint,
            data=header.data,
            data_digest=header.digest,
            test_digest=whole[-1].test_digest(),
            split=self.split,
            images_without_boxes=sum(not boxes for boxes in header.boxes),
            held_out_from=self.held_out_from(unseen),
            faults={kind: tuple(names) for kind, names in faults.items()},
        )


def keep(run: Run, evaluation: Evaluation) -> Evaluation:
    """Write the evaluation into the run folder, and its figures of each class as a table.

    Returns what the run has now: earlier scores of the same checkpoint under other protocols are kept.
    """
    if run.folder.scores.is_file():
        try:
            evaluation = evaluation.with_earlier(Evaluation.read(run.folder.scores))
        except DataError as error:
            note(f"{error}; replaced by the new scores")
    write_json(run.folder.scores, evaluation.to_json())
    text = io.StringIO()
    rows = [{"protocol": name, **row.to_json()} for name, s in evaluation.items() for row in s.per_class]
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(run.folder.per_class, text.getvalue())
    return evaluation


def _refuse_unfit(run: Run, index: DataIndex, split: Split) -> None:
    """Raise where the data set does not fit this run; note where the run was trained on other data."""
    if index.classes != run.classes:
        raise DataError(
            f"{index.root}: not the classes that {run.path} was trained on "
            f"({len(index.classes)}, it knows {len(run.classes)})"
        )
    test = index.split(split)
    if not test:
        raise DataError(f"{index.root}: no test images: nothing to evaluate; 'wsol localize' needs none")
    if not any(s.boxes for s in test):
        raise DataError(
            f"{index.root}: no {split} image has a box: localization cannot be measured; give some a box "
            "(see 'wsol init --help'), or use 'wsol localize', which needs none"
        )
    if index.digest() != run.data.digest:
        note(f"{index.root} is not the data that {run.path} was trained on")


def _require_one_checkpoint(used: Sequence[Predictions]) -> None:
    """Raise where the predictions come from different checkpoints."""
    origins = {p.folder.name: (p.header.origin, p.header.checkpoint) for p in used}
    if len(set(origins.values())) > 1:
        which = "; ".join(f"{name} is of {origin}" for name, (origin, _) in origins.items())
        raise DataError(f"predictions of different checkpoints ({which}); evaluate without --reuse")
