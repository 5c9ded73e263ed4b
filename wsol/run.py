"""A run: a folder with what training and evaluation left in it, read by name when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from wsol.config import Config
from wsol.config_file import load_config
from wsol.data.index import open_dataset
from wsol.data.record import DataRecord
from wsol.data.transforms import ViewKind
from wsol.errors import CheckpointError, ConfigError, DataError, RunFolderError
from wsol.localization.predictions import ClassesBy, Predictions
from wsol.method_names import OWN_CLASS, describe, method_name, network_name
from wsol.notices import note
from wsol.plugins import load_recorded, require_recorded
from wsol.registry import suggest
from wsol.runs.folder import RunFolder
from wsol.runs.history import Row, read_csv
from wsol.runs.hub import local_folder
from wsol.scoring.protocols import Protocol, find_protocols, require_boxes
from wsol.scoring.scores import Evaluation, Scores
from wsol.scoring.tables import headline_rows
from wsol.text_table import html_table

if TYPE_CHECKING:
    from torch import nn

    from wsol.localization.batch import AnyLocalizer
    from wsol.models.classifier.building import BuiltClassifier
    from wsol.models.localizer import Localizer
    from wsol.models.trained_classifier import TrainedClassifier

T = TypeVar("T", bound="nn.Module")


#: Images that are measured: those of the test, or those that were held out of training to choose by.
Split = Literal["test", "val"]
_PREDICTED: Mapping[Split, str] = {"test": "test", "val": "held_out"}


@dataclass(frozen=True)
class CheckpointInfo:
    """Which checkpoint: its file name, the SHA-256 of its content, and the epochs that it was trained for.

    epoch: None where nothing was trained, as in a run of a plain classifier.
    """

    name: str
    digest: str
    epoch: int | None

    def __str__(self) -> str:
        return self.name if self.epoch is None else f"{self.name}, epoch {self.epoch}"


class Run:
    """A run folder, read by name: `Run("runs/demo").scores`.

    path: a run folder; a pack, whose files are then compared with its manifest; or `hf://owner/name` or
    `hf://owner/name@revision`, a pack on the Hugging Face Hub. data: where the data set is now, if it was
    moved since training.

    >>> run = Run("runs/demo")
    >>> run.config.model.backbone.name, len(run.history), run.data.classes[0]
    ('tiny', 2, '001.Amber_capped_Finch')
    >>> run.scores["gpca"]["gt_known_loc"] >= 0
    True
    """

    def __init__(self, path: Path | str, data: Path | str | None = None) -> None:
        self.folder = RunFolder(local_folder(path))
        self.name = self.folder.require()
        self._data_root = None if data is None else Path(data)
        self._classifier: BuiltClassifier | None = None

    @property
    def path(self) -> Path:
        return self.folder.path

    @cached_property
    def config(self) -> Config:
        """The resolved config that the run was trained with."""
        changed: dict[str, Any] = {} if self._data_root is None else {"data.root": self._data_root}
        if self.folder.is_pack:
            require_recorded(self.folder.plugins, self.path)
            changed["plugins"] = []  # a stranger's file names no module to import
        else:
            load_recorded(self.folder.plugins, self.path)
        config = load_config(self.folder.config, set=changed, of_run=True)
        if self.folder.is_pack and config.classifier is not None:
            self._refuse_code(config.classifier.name)
        return config

    def _refuse_code(self, classifier: str) -> None:
        """Raise where the classifier of a pack is a function of some module, which would have to be run."""
        from wsol.models.classifier.opening import is_public

        if not is_public(classifier):
            raise ConfigError(
                f"{self.path}: needs the classifier {classifier}, Python code that is no part of a pack; "
                "nothing was loaded"
            )

    @cached_property
    def data(self) -> DataRecord:
        """What the run keeps of its data set: classes, hierarchy, counts, digest."""
        return DataRecord.read(self.folder)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.data.classes

    @cached_property
    def history(self) -> list[Row]:
        """The figures of every epoch; [] where none is complete."""
        return read_csv(self.folder.metrics) if self.folder.metrics.is_file() else []

    @property
    def checkpoints(self) -> list[Path]:
        """The checkpoints that exist, in the order of preference: that of `eval.checkpoint` comes first."""
        store = self.folder.checkpoints
        ordered = [store.last, store.previous]
        ordered.insert(0 if self.config.eval.checkpoint == "best" else 2, store.best)
        return [p for p in ordered if p.exists()]

    @cached_property
    def checkpoint(self) -> CheckpointInfo:
        """The checkpoint that `localizer` uses."""
        if self.config.classifier is not None:
            self.any_localizer("cpu")
        return self.__dict__.get("checkpoint") or self._load()[1]

    @property
    def checkpoint_path(self) -> Path | None:
        """The file of `checkpoint`; None where there is none, as in a run of a plain classifier."""
        return None if self.config.classifier else self.folder.checkpoints.folder / self.checkpoint.name

    def classifier(self, device: str = "auto") -> BuiltClassifier:
        """The plain classifier that this run looks into; ConfigError where it has a trained localizer."""
        from wsol.models.classifier.building import build_classifier
        from wsol.runs.ranks import pick_device

        section = self.config.classifier
        if section is None:
            raise ConfigError(f"{self.path}: a run of a trained localizer, not of a classifier")
        if section.name.startswith("<"):
            raise RunFolderError(
                f"{self.path}: made from a model that was given in Python ({section.name}), which is not "
                "kept here; give that model to wsol.from_classifier again"
            )
        if self.is_packed:
            section = replace(section, weights=str(self.folder.packed_weights))
        return build_classifier(section, None, self.config.data.image_size, pick_device(device))

    def use_classifier(self, built: BuiltClassifier) -> None:
        """Take this classifier for `localizer`, instead of building the one of the config."""
        self._classifier = built

    def any_localizer(self, device: str = "auto") -> AnyLocalizer:
        """The trained localizer, with its source's classes where it was refined; or the run's classifier, in
        the data set's classes where it knows them."""
        self.require_maps()
        if self.config.classifier is None:
            own, source = self.localizer(device), self.source
            if source is None:
                return own
            from wsol.localization.refined import RefinedLocalizer

            return RefinedLocalizer(own, source.any_localizer(device)).eval()
        built = self._classifier or self.classifier(device)
        fitted = built.for_classes(self.classes)
        origin = built.origin if fitted.knows_classes else f"{built.origin}, {OWN_CLASS}"
        self.__dict__["checkpoint"] = CheckpointInfo(origin, built.digest, None)
        return fitted

    @cached_property
    def source(self) -> Run | None:
        """Of a refined run, the one inside of it that gives the classes; None where there are none."""
        if self.config.refine is None:
            return None
        knows = self.folder.read_json(self.folder.source_record).get("knows_classes")
        return Run(self.folder.source) if knows else None

    def localizer(self, device: str = "auto") -> Localizer:
        """The trained localizer, ready for images, on a device; no data set is touched."""
        if self.config.classifier is not None:
            raise ConfigError(f"{self.path}: a run of a plain classifier, which `wsol.load` opens")
        self.require_maps()
        from wsol.models.localizer import build_localizer

        blank = replace(self.config.model, weights="none")  # everything comes from the checkpoint
        size = self.config.data.image_size
        return self._filled(
            build_localizer(blank, len(self.classes), self.data.hierarchy, image_size=size), device
        )

    def trained_classifier(self, device: str = "auto") -> TrainedClassifier:
        """The network that `wsol classify` trained, ready for images, on a device."""
        if self.config.network is None:
            raise ConfigError(f"{self.path}: not a run of `wsol classify`")
        from wsol.models.trained_classifier import build_classifier_to_train

        blank = replace(self.config.network, weights="none")
        size = self.config.data.image_size
        return self._filled(build_classifier_to_train(blank, len(self.classes), size), device)

    def require_maps(self) -> None:
        """Raise where this is a run of a network that classifies and makes no maps."""
        if self.config.network is not None:
            raise ConfigError(
                f"{self.path}: a classifier of `wsol classify`, which makes no maps and finds no boxes; "
                "`wsol evaluate` and `wsol compare` take it"
            )

    def _filled(self, model: T, device: str) -> T:
        """A new model with the values of the checkpoint, on the device, for test."""
        from wsol.runs.checkpoint import load_model_state
        from wsol.runs.ranks import pick_device

        place = pick_device(device)
        state, info = self._load()
        self.__dict__["checkpoint"] = info  # so that it is not read again
        here = describe(self.config, len(self.classes))
        load_model_state(model, state["model"], here, state["describes"])
        return model.to(place).eval()

    def _load(self) -> tuple[dict[str, Any], CheckpointInfo]:
        from wsol.runs.checkpoint import digest_of, load_first, require_parts

        if self.is_packed:
            return self._load_packed()
        if not self.checkpoints:
            raise RunFolderError(f"{self.path}: no checkpoint yet; train it first (wsol train ... --resume)")
        state, used = load_first(self.checkpoints, note)
        require_parts(state, ("model", "describes", "epoch"))
        return state, CheckpointInfo(used.name, digest_of(used), state["epoch"])

    @property
    def is_packed(self) -> bool:
        """Whether its weights are those of a pack: the run is one, or was started from one."""
        return not self.checkpoints and self.folder.packed_weights.is_file()

    def _load_packed(self) -> tuple[dict[str, Any], CheckpointInfo]:
        from wsol.runs.packed_weights import read_weights

        path = self.folder.packed_weights
        model, about = read_weights(path)
        try:
            info = CheckpointInfo(about["checkpoint"], about["digest"], int(about["epoch"]))
            return {"model": model, "describes": about["describes"], "epoch": info.epoch}, info
        except (KeyError, ValueError):
            raise CheckpointError(
                f"{path}: not the weights of a pack: it does not say of which run"
            ) from None

    def packed_parts(self) -> tuple[dict[str, Any], dict[str, str]]:
        """What `wsol.runs.packed_weights` writes: the tensors of its own network, and what they are of."""
        if self.config.classifier is not None:
            built = self.classifier("cpu")
            return built.opened.model.state_dict(), {"checkpoint": built.origin, "digest": built.digest}
        state, info = self._load()
        about = {"checkpoint": info.name, "digest": info.digest, "epoch": str(info.epoch)}
        return state["model"], {**about, "describes": state["describes"]}

    @cached_property
    def scores(self) -> Evaluation:
        """The newest evaluation: scores by protocol."""
        if not self.folder.scores.is_file():
            raise RunFolderError(f"{self.path}: not evaluated yet; run `wsol evaluate {self.path}` first")
        return Evaluation.read(self.folder.scores)

    @property
    def is_evaluated(self) -> bool:
        return self.folder.scores.is_file()

    def predictions(
        self, split: str = "test", view: ViewKind = "resize", classes_by: ClassesBy = "view"
    ) -> Predictions:
        """What the localizer found in every image of a split: `test` or `held_out`.

        classes_by: what ranks the classes: the test image that `view` names, or `ten crops`.
        """
        by_view = Predictions(self.folder.predictions_of(split, view))
        if classes_by == "view" or not by_view.header.knows_classes:
            return by_view
        return Predictions(by_view.folder, self.folder.ten_crops_of(split))

    def predicted(self, split: Split) -> str:
        """The name under which the predictions of a split are kept.

        Raises ConfigError where there is no such split, and where the run held no images out.
        """
        if split not in _PREDICTED:
            raise ConfigError(f"split {split!r}: one of {', '.join(_PREDICTED)}")
        if split == "val" and not self.data.counts.get("val"):
            raise ConfigError(
                f"{self.path}: no images were held out of its training; train with data.val_share above 0"
            )
        return _PREDICTED[split]

    @cached_property
    def test_digest(self) -> str:
        """What identifies the test images and truths of the scores; '' where an old run cannot tell."""
        if self.scores.test_digest:
            return self.scores.test_digest
        try:  # scores of before lack it; the predictions that they were made of know the images
            predictions = self.predictions("test", cast(ViewKind, next(iter(self.scores.values())).view))
        except (DataError, StopIteration):
            return ""
        same = predictions.header.digest == self.scores.data_digest
        return predictions.test_digest() if same else ""

    def evaluated(self, protocol: Protocol) -> tuple[Scores, Predictions]:
        """The scores under a protocol that measures boxes, and the predictions that they were made of.

        Raises DataError where the two are of different checkpoints, as after an evaluation that was killed.
        """
        self.require_maps()
        require_boxes(protocol)
        if protocol.name not in self.scores:
            near = suggest(protocol.name, self.scores)
            raise RunFolderError(
                f"{self.path}: not measured by protocol {protocol.name!r}{near}; "
                f"run `wsol evaluate {self.path} --protocol {protocol.name}`"
            )
        scores = self.scores[protocol.name]
        if scores.version != protocol.version:
            raise DataError(
                f"{self.path}: its scores are of version {scores.version} of protocol {protocol.name}, now "
                f"there is version {protocol.version}; run `wsol evaluate {self.path} --protocol "
                f"{protocol.name}` again"
            )
        predictions = self.predictions("test", protocol.view, protocol.classes_by)
        for header in (part.header for part in predictions.parts):
            own = (self.scores.checkpoint, self.scores.checkpoint_digest)
            if own != (header.origin, header.checkpoint):
                raise DataError(
                    f"{self.path}: its scores are of {self.scores.checkpoint}, its predictions of "
                    f"{header.origin}: not the same checkpoint; run `wsol evaluate {self.path}` again"
                )
        return scores, predictions

    def protocol(self, name: str | None = None) -> Protocol:
        """A protocol by name; None for the config's, or else the first that the run was measured by."""
        if name is None:
            own = self.config.eval.protocol
            name = own if not self.is_evaluated or own in self.scores else next(iter(self.scores))
        return find_protocols(name)[0]

    def threshold(self, protocol: Protocol) -> float:
        """Where maps of new photos are cut: chosen on held-out images of this checkpoint, or else fixed."""
        if not self.is_evaluated or protocol.name not in self.scores:
            return protocol.extraction.fixed
        scores = self.scores
        if scores.checkpoint_digest and scores.checkpoint_digest != self.checkpoint.digest:
            note(
                f"{self.path}: the scores are of {scores.checkpoint}, the run has {self.checkpoint} now; the "
                f"threshold is the protocol's own until `wsol evaluate {self.path}` has run again"
            )
            return protocol.extraction.fixed
        own = scores[protocol.name]
        if own.version != protocol.version:
            note(
                f"{self.path}: its threshold is of version {own.version} of protocol {protocol.name}, "
                f"now there is version {protocol.version}; the threshold is the protocol's own until "
                f"`wsol evaluate {self.path} --protocol {protocol.name}` has run again"
            )
            return protocol.extraction.fixed
        return own.default_threshold()

    def image_paths(self, predictions: Predictions) -> list[Path]:
        """The image file of every row. Predictions of old runs lack them: then the data set is read."""
        if predictions.header.paths:
            return [predictions.image_path(row, self._data_root) for row in range(len(predictions))]
        index = open_dataset(self.config.data)
        predictions.require(index)
        paths = {s.name: s.path for s in index.samples}
        return [paths[name] for name in predictions.names]

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _repr_html_(self) -> str:
        facts = [
            ["run", str(self.path)],
            ["method", f"{method_name(self.config)} on {network_name(self.config)}"],
            ["classes", str(len(self.classes))],
            ["epochs", str(len(self.history))],
        ]
        text = html_table(facts)
        return text + (html_table(headline_rows(self.scores)) if self.is_evaluated else "")
