"""A run folder: everything that a run is, in one place, complete enough to be carried elsewhere.

::

    config.yaml     the resolved config: `wsol train RUN/config.yaml` trains the same again
    versions.json   what it ran on
    data.json       digest, class names, hierarchy and counts of the data set; images that were skipped
    weights.json    where the first weights came from, what they lacked
    metrics.csv     one row for each epoch;  curves.png, tensorboard/ draw it
    checkpoints/    last.ckpt, previous.ckpt, best.ckpt

and later, by other commands: predictions/, scores.json, overlays/, report.html.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsol.config import Config
from wsol.config_file import dump_config, load_config
from wsol.data.hierarchy import Hierarchy
from wsol.errors import RunFolderError
from wsol.records import SPLITS, DataIndex
from wsol.runs.checkpoint import Checkpoints, load_first, load_model_state, require_parts
from wsol.runs.files import clear_leftovers, is_leftover, write_atomically
from wsol.runs.lock import FolderLock

if TYPE_CHECKING:
    from wsol.models.localizer import Localizer


class RunFolder:
    """The names of the files in a run folder, and how they are written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.versions = path / "versions.json"
        self.data = path / "data.json"
        self.weights = path / "weights.json"
        self.metrics = path / "metrics.csv"
        self.curves = path / "curves.png"
        self.tensorboard = path / "tensorboard"
        self.predictions = path / "predictions"
        self.diverged = path / "diverged.json"
        self.checkpoints = Checkpoints(path / "checkpoints")
        self._lock: FolderLock | None = None

    def claim(self, resume: bool) -> None:
        """Make this process the one writer of the folder, which must be empty unless the run is resumed."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.path)
            if not resume and not is_free(self.path):
                self.release()
                raise RunFolderError(
                    f"{self.path}: not empty; continue that run with --resume or choose another --run-dir"
                )
            if not self.config.is_file() and not is_free(self.path):
                self.release()
                raise RunFolderError(
                    f"{self.path}: there are files but no run in it (no {self.config.name}); "
                    "choose another --run-dir"
                )
            clear_leftovers(self.path)
            self.diverged.unlink(missing_ok=True)  # it told of the attempt before this one
            self.checkpoints.prepare()
        except OSError as error:
            raise RunFolderError(f"{self.path}: cannot be used: {error.strerror}") from None

    def claim_predictions(self) -> None:
        """Make this process the one that writes predictions and scores; training may go on beside it."""
        try:
            self.predictions.mkdir(exist_ok=True)
            self._lock = FolderLock(self.predictions)
        except OSError as error:
            raise RunFolderError(f"{self.predictions}: cannot be used: {error.strerror}") from None

    def release(self) -> None:
        """Let go of the folder; the end of the process does the same."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def write(self, path: Path, text: str) -> None:
        """One of the folder's text files, whole or not at all."""
        try:
            write_atomically(path, text.encode())
        except OSError as error:
            raise RunFolderError(f"{path}: could not be written: {error.strerror}") from None

    def write_json(self, path: Path, record: Mapping[str, Any]) -> None:
        self.write(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")

    def write_config(self, config: Config) -> None:
        self.write(self.config, dump_config(config))

    def read_json(self, path: Path) -> dict[str, Any]:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise RunFolderError(f"{path}: not the JSON that a run writes: {error}") from None
        if not isinstance(record, dict):
            raise RunFolderError(f"{path}: not the JSON that a run writes")
        return record


def is_free(path: Path) -> bool:
    """Whether nothing is there but what a run leaves that failed early: folders, a lock, half a file."""
    files = (p for p in path.rglob("*") if not p.is_dir())
    return all(p.name == FolderLock.NAME or is_leftover(p) for p in files)


def default_run_dir(config_path: Path, resume: bool, parent: Path = Path("runs")) -> Path:
    """runs/<name of the config>, with -2, -3, ... where that is taken; to resume, the newest of them."""
    number = 1
    chosen = parent / config_path.stem
    while not is_free(chosen):
        number += 1
        following = parent / f"{config_path.stem}-{number}"
        if resume and is_free(following):
            return chosen
        chosen = following
    return chosen


def describe(config: Config, classes: int) -> str:
    """A model in a few words, for messages: `vgg16, adl, cam head, gpca, 200 classes`."""
    model = config.model
    parts = [model.backbone.name, model.drop.name, f"{model.head.name} head", model.attention.name]
    return ", ".join([p for p in parts if p not in ("none", "identity")] + [f"{classes} classes"])


@dataclass(frozen=True)
class DataRecord:
    """What a run keeps of its data set, so that its localizer works without the data."""

    digest: str  # of the data set as it lies on disk
    classes: tuple[str, ...]
    hierarchy: Hierarchy | None
    counts: Mapping[str, int]  # images of each split that are used
    skipped: tuple[str, ...] = ()  # why each of the other images was left out of training

    @classmethod
    def of(cls, index: DataIndex, digest: str, skipped: tuple[str, ...] = ()) -> DataRecord:
        counts = {split: len(index.split(split)) for split in SPLITS}
        return cls(digest, index.classes, index.hierarchy, counts, skipped)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, folder: RunFolder) -> DataRecord:
        record = folder.read_json(folder.data)
        try:
            return cls.from_json(record)
        except (KeyError, TypeError, IndexError):
            raise RunFolderError(f"{folder.data}: not what a run writes") from None

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> DataRecord:
        tree = record["hierarchy"]
        hierarchy = tree and Hierarchy(
            tuple(tree["levels"]),
            tuple(tuple(names) for names in tree["names"]),
            tuple(tuple(up) for up in tree["parents"]),
        )
        return cls(
            record["digest"], tuple(record["classes"]), hierarchy, record["counts"], tuple(record["skipped"])
        )


@dataclass(frozen=True)
class LoadedRun:
    """A trained localizer, in evaluation mode, and what is needed to use it."""

    path: Path
    config: Config
    localizer: Localizer
    data: DataRecord
    checkpoint: Path
    epoch: int  # epochs that the checkpoint was trained for

    @property
    def classes(self) -> tuple[str, ...]:
        return self.data.classes


def load_run(
    path: Path | str,
    device: str = "auto",
    overrides: Sequence[str] = (),
    notice: Callable[[str], None] = lambda text: print(f"wsol: note: {text}", file=sys.stderr),
) -> LoadedRun:
    """Open a run folder: the best checkpoint where there is one, else the last; no data set is touched.

    overrides: `--set` texts on the run's config, for those who evaluate it elsewhere (`data.root=...`).
    """
    from wsol.models.localizer import build_localizer
    from wsol.runs.ranks import pick_device

    folder = RunFolder(Path(path))
    if not folder.config.is_file():
        raise RunFolderError(f"{path}: not a run folder: it has no {folder.config.name}")
    config = load_config(folder.config, overrides)
    data = DataRecord.read(folder)
    store = folder.checkpoints
    paths = [p for p in (store.best, store.last, store.previous) if p.exists()]
    if not paths:
        raise RunFolderError(f"{path}: no checkpoint yet; train it first (wsol train ... --resume)")
    state, used = load_first(paths, notice)
    require_parts(state, ("model", "describes", "epoch"))
    blank = replace(config.model, weights="none")  # everything comes from the checkpoint
    localizer = build_localizer(blank, len(data.classes), data.hierarchy, image_size=config.data.image_size)
    load_model_state(localizer, state["model"], describe(config, len(data.classes)), state["describes"])
    return LoadedRun(
        path=folder.path,
        config=config,
        localizer=localizer.to(pick_device(device)).eval(),
        data=data,
        checkpoint=used,
        epoch=state["epoch"],
    )
