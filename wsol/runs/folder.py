"""A run folder: everything that belongs to a run, in one place. It can be moved to another machine.

::

    config.yaml       the resolved config: `wsol train RUN/config.yaml` trains the same again
    versions.json     what it ran on
    data.json         digest, class names, hierarchy and counts of the data set; images that were skipped
    weights.json      where the first weights came from, what they lacked
    plugins.json      the user's modules that took part, where there were any
    metrics.csv       one row for each epoch;  curves.png, tensorboard/ draw it
    diverged.json     the step in which the loss was no longer a number, where that happened
    checkpoints/      last.ckpt, previous.ckpt, best.ckpt

in a refined run also::

    source.json       the run that it was refined from
    source/           that run's model, where it gives the classes: a run folder of its own
    guides/           the maps of that run, which it learned from

and later, by other commands: predictions/<split>-<view>/, scores.json, per_class.csv, overlays/, analysis/,
report.html, localizer.pt2, localizer.onnx. The names occur in this package only (`wsol.runs`).

A *pack* is a run folder to hand on, by `wsol pack`. It opens as a run and is never written to::

    README.md            the model card;  picture.jpg stands in it
    config.yaml, data.json, plugins.json, scores.json    as above, without the paths of the machine
    weights.safetensors  the weights, in place of checkpoints
    source.json, source/ of a refined run: where it came from, and the model that gives the classes, a pack
    manifest.json        the SHA-256 digest of every file
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from wsol.errors import RunFolderError
from wsol.runs.checkpoint import Checkpoints
from wsol.runs.files import (
    clear_leftovers,
    is_leftover,
    make_folder,
    open_regular,
    real_path,
    refuse_link,
    write_json,
    write_text,
)
from wsol.runs.lock import FolderLock
from wsol.runs.manifest import BESIDE, read_manifest


class RunFolder:
    """The names of the files in a run folder, how they are written, and who may write them."""

    def __init__(self, path: Path | str) -> None:
        path = Path(path)
        self.path = path
        self.config = path / "config.yaml"
        self.versions = path / "versions.json"
        self.data = path / "data.json"
        self.weights = path / "weights.json"
        self.plugins = path / "plugins.json"
        self.metrics = path / "metrics.csv"
        self.curves = path / "curves.png"
        self.tensorboard = path / "tensorboard"
        self.diverged = path / "diverged.json"
        self.checkpoints = Checkpoints(path / "checkpoints")
        self.source_record = path / "source.json"
        self.source = path / "source"
        self.guides = path / "guides"
        self.predictions = path / "predictions"
        self.scores = path / "scores.json"
        self.per_class = path / "per_class.csv"
        self.overlays = path / "overlays"
        self.report = path / "report.html"
        self.analysis = path / "analysis"
        self.card = path / "README.md"
        self.picture = path / "picture.jpg"
        self.packed_weights = path / "weights.safetensors"
        self.manifest = path / "manifest.json"
        self._provenance = (
            *(self.config, self.versions, self.data, self.weights, self.plugins),
            self.source_record,
        )
        self._lock: FolderLock | None = None
        self._was_free = False  # when this process claimed it
        self._made: list[Path] = []  # folders that this process made, the outermost first

    def predictions_of(self, split: str, view: str) -> Path:
        """The predictions of one split and one kind of test image: `predictions/test-resize`."""
        return self.predictions / f"{split}-{view}"

    def ten_crops_of(self, split: str) -> Path:
        """The classes of one split by ten crops of each image: `predictions/test-tencrop`."""
        return self.predictions_of(split, "tencrop")

    def exported(self, suffix: str) -> Path:
        """Where `wsol export` writes the model unless it is told otherwise. suffix: `.pt2` or `.onnx`."""
        self.refuse_pack("say where to write (--out)")
        return self.path / f"localizer{suffix}"

    @property
    def is_pack(self) -> bool:
        return self.manifest.is_file()

    @property
    def pack_files(self) -> tuple[str, ...]:
        """The files that a pack can have, beside its manifest."""
        parts = (
            self.config,
            self.data,
            self.plugins,
            self.scores,
            self.card,
            self.picture,
            self.packed_weights,
            self.source_record,
            self.source / self.manifest.name,
        )
        return tuple(path.relative_to(self.path).as_posix() for path in parts)

    def is_pack_file(self, name: str) -> bool:
        """Whether a pack can have this file: `config.yaml`, or `source/config.yaml` of a pack in it."""
        inner = f"{self.source.name}/"
        while name.startswith(inner):
            name = name.removeprefix(inner)
        return name in (*self.pack_files, self.manifest.name)

    def require(self) -> str:
        """The name of the run. Raises where this is no run folder, or a pack that is not as it was made."""
        if self.is_pack:
            name = str(read_manifest(self.manifest, self.pack_files)["name"])
            if self.source.is_dir():
                RunFolder(self.source).require()
        else:
            name = real_path(self.path).name
        if not self.config.is_file():
            raise RunFolderError(f"{self.path}: not a run folder: it has no {self.config.name}")
        return name

    def refuse_pack(self, instead: str) -> None:
        """Raise where something would be written into a pack. instead: what to do."""
        if self.is_pack:
            raise RunFolderError(f"{self.path}: a pack, which stays as it is; {instead}")

    def claim(self, resume: bool) -> None:
        """Make this process the one writer of the folder, which must be empty unless the run is resumed.

        If that is refused, what was made for it is removed.
        """
        self.refuse_pack("choose another --run-dir")
        try:
            self._made = _make_with_parents(self.path)
            self._lock = FolderLock(self.path)
            self._refuse_foreign_files(resume)
            refuse_link(self.tensorboard)
            self._was_free = is_free(self.path)
            clear_leftovers(self.path, _former_names(self))
            if make_folder(self.checkpoints.folder):
                self._made.append(self.checkpoints.folder)
            self.checkpoints.prepare()
        except OSError as error:
            self.abandon()
            raise RunFolderError(f"{self.path}: cannot be used: {error.strerror}") from None
        except RunFolderError:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Undo `claim` for a run that did not begin.

        What this process made is removed, and what was there before stays. A run with a checkpoint has begun
        and is only released. Without a claim, nothing happens.
        """
        if self._lock is not None and self._was_free and not self.checkpoints.exist():
            for path in self._provenance:
                path.unlink(missing_ok=True)
            for made in (self.tensorboard, self.source, self.guides):
                shutil.rmtree(made, ignore_errors=True)
        if self.checkpoints.folder in self._made:
            _remove_if_empty(self.checkpoints.folder)
        if self._lock is not None:
            self._lock.undo()
            self._lock = None
        for path in reversed(self._made):
            _remove_if_empty(path)
        self._made = []

    def claim_predictions(self) -> None:
        """Make this process the one that writes predictions and scores; training may go on beside it."""
        self.refuse_pack("say where the figures go (--out)")
        try:
            make_folder(self.predictions)
            self._lock = FolderLock(self.predictions)
            clear_leftovers(self.predictions, ())
        except OSError as error:
            raise RunFolderError(f"{self.predictions}: cannot be used: {error.strerror}") from None

    def copy_to(self, folder: Path, checkpoint: Path | None) -> None:
        """What a localizer is made from: config, data record and the like, and one checkpoint; or a pack."""
        try:
            if self.is_pack:
                shutil.copytree(self.path, folder, ignore=lambda *_: BESIDE, dirs_exist_ok=True)
                return
            for path in self._provenance:
                if path.is_file():
                    shutil.copyfile(path, folder / path.name)
            if checkpoint is not None:
                target = RunFolder(folder).checkpoints.folder / checkpoint.name
                target.parent.mkdir()
                shutil.copyfile(checkpoint, target)
            if self.source.is_dir():
                shutil.copytree(self.source, folder / self.source.name)
        except OSError as error:
            raise RunFolderError(f"{self.path}: cannot be copied: {error.strerror}") from None

    def release(self) -> None:
        """Release the folder; the end of the process does the same."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def write(self, path: Path, text: str) -> None:
        """One of the folder's text files, whole or not at all."""
        write_text(path, text)

    def write_json(self, path: Path, record: Mapping[str, Any]) -> None:
        """One of the folder's JSON files, whole or not at all. NaN and infinity become null."""
        write_json(path, record)

    def read_json(self, path: Path) -> dict[str, Any]:
        """One of the folder's JSON files. RunFolderError where it is missing, damaged or no mapping."""
        try:
            with open_regular(path) as file:
                record = json.loads(file.read())
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise RunFolderError(f"{path}: not the JSON that a run writes: {error}") from None
        if not isinstance(record, dict):
            raise RunFolderError(f"{path}: not the JSON that a run writes")
        return record

    def _refuse_foreign_files(self, resume: bool) -> None:
        if is_free(self.path):
            return
        if not resume:
            raise RunFolderError(
                f"{self.path}: not empty; continue that run with --resume or choose another --run-dir"
            )
        if not self.config.is_file():
            raise RunFolderError(
                f"{self.path}: there are files but no run in it (no {self.config.name}); "
                "choose another --run-dir"
            )


def is_free(path: Path) -> bool:
    """Whether the folder holds nothing but folders, a lock and drafts, as after an early kill."""
    folder = RunFolder(path)
    drafts = {*_former_names(folder), *folder.checkpoints.names}

    def matters(inner: Path) -> bool:
        if inner.is_symlink():
            return True
        own = (inner, *inner.parents[: len(inner.relative_to(path).parts) - 1])
        return not (
            inner.is_dir() or inner.name == FolderLock.NAME or any(is_leftover(p, drafts) for p in own)
        )

    return not any(matters(inner) for inner in path.rglob("*"))


def default_run_dir(name: str, resume: bool, parent: Path = Path("runs")) -> Path:
    """runs/<name>, with -2, -3, ... where that is taken; to resume, the newest of them."""
    number = 1
    chosen = parent / name
    while not is_free(chosen):
        number += 1
        following = parent / f"{name}-{number}"
        if resume and is_free(following):
            return chosen
        chosen = following
    return chosen


def _former_names(folder: RunFolder) -> set[str]:
    """The files of the run folder that earlier versions wrote first as `NAME.<process id>.tmp`."""
    own = (folder.config, folder.versions, folder.data, folder.weights, folder.metrics, folder.diverged)
    return {path.name for path in own}


def _make_with_parents(path: Path) -> list[Path]:
    """Make the folder and those above it; returns the ones that were missing, the outermost first."""
    missing: list[Path] = []
    for folder in (path, *path.parents):
        if folder.exists():
            break
        missing.insert(0, folder)
    path.mkdir(parents=True, exist_ok=True)
    return missing


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
