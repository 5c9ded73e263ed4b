"""Everything that a run needs before its first step: the folder, the data, the model, and its progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from wsol.config import Config, Data
from wsol.data.dataset import EpochSampler, TrainLoader, make_train_loader
from wsol.data.index import open_dataset, refuse_bad_images
from wsol.data.record import DataRecord
from wsol.errors import ConfigError, RunFolderError
from wsol.method_names import describe
from wsol.models.building import build_model
from wsol.records import DataIndex, Sample
from wsol.runs.checkpoint import State, load_model_state, require_parts
from wsol.runs.folder import RunFolder
from wsol.runs.history import Row, read_csv
from wsol.runs.ranks import Ranks
from wsol.training import random_state
from wsol.training.guides import Guides
from wsol.training.log import EpochSums, RunLog
from wsol.training.precision import decide_precision, slow_precision
from wsol.training.provenance import (
    check_same_run,
    renew_provenance,
    require_same_config,
    write_provenance,
)
from wsol.training.source import prepare_maps
from wsol.training.train_step import TrainStep
from wsol.training.validation import Validator

# What a checkpoint holds: the training step, the progress, and the rest.
PARTS = (
    *("model", "optimizer", "scaler"),
    *("epoch", "step", "sums", "history"),
    *("random", "describes"),
)


@dataclass
class Progress:
    """Where a run stands: `epoch` epochs are complete, and `step` steps of the next one."""

    epoch: int = 0
    step: int = 0
    sums: EpochSums = field(default_factory=EpochSums)
    history: list[Row] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "step": self.step, "sums": self.sums.state(), "history": self.history}

    @classmethod
    def of(cls, state: dict[str, Any]) -> Self:
        return cls(state["epoch"], state["step"], EpochSums(**state["sums"]), state["history"])


def check_images(index: DataIndex, data: Data) -> tuple[DataIndex, DataRecord]:
    """The data set with every image known to be readable, and what the run keeps of it."""
    usable, skipped = refuse_bad_images(index, data.on_bad_image)
    return usable, DataRecord.of(usable, index.digest(), skipped)


@dataclass
class Session:
    """A run that is ready to go on, as one process sees it. The main rank alone writes."""

    config: Config
    ranks: Ranks
    folder: RunFolder
    log: RunLog
    description: str  # the model in a few words
    samples: Sequence[Sample]
    sampler: EpochSampler
    loader: TrainLoader
    validator: Validator
    train_step: TrainStep
    progress: Progress

    def save(self, best: bool = False) -> None:
        """A checkpoint of everything that continues the run from here. Every rank calls this."""
        states = self.ranks.gather(random_state.capture(self.train_step))

        def write() -> None:
            self.folder.checkpoints.save(
                {
                    **self.train_step.state(),
                    **self.progress.state(),
                    "random": states,  # one of each rank
                    "describes": self.description,
                },
                best,
            )

        self.ranks.on_main(write)


def last_state(folder: RunFolder, log: RunLog) -> State | None:
    """The newest checkpoint of the run that is to be continued, or None where it never saved one.

    Raises where checkpoints were saved and none is left: beginning again would overwrite the log of that run.
    """
    state = folder.checkpoints.load_last(log.note)
    if state is None and folder.config.exists():
        epochs = len(read_csv(folder.metrics)) if folder.metrics.exists() else 0
        if epochs > 1:  # the first row is written just before the first checkpoint
            raise RunFolderError(
                f"{folder.path}: {folder.metrics.name} has {epochs} epochs, but none of the checkpoints "
                f"{', '.join(folder.checkpoints.names)} is left to continue from; choose another --run-dir"
            )
        log.note("the run was stopped before its first checkpoint; it begins again at epoch 1")
    return state


def prepare(
    config: Config, folder: RunFolder, resume: bool, ranks: Ranks, progress_lines: bool = True
) -> Session:
    """Begin a run in the folder, or continue its run. Every rank calls this."""
    log = RunLog(config.train.epochs, ranks.is_main, progress_lines)
    require_same_config(config, ranks)
    ranks.on_main(lambda: folder.claim(resume))
    given = config
    config = ranks.on_main(lambda: decide_precision(given, folder, ranks.device))
    t = config.train

    # The model: the same weights, and the same draws of the drop blocks, on every rank. It needs the classes
    # alone, so that what cannot be built is refused before any image is read.
    found = ranks.on_main(lambda: open_dataset(config.data))
    random_state.seed_everything(t.seed)
    model = build_model(config, len(found.classes), found.hierarchy)
    model.seed(t.seed)
    weights = model.weights_report.to_dict()
    train_step = TrainStep(model, t, ranks)
    slow = slow_precision(t.amp, ranks.device)
    if slow is not None:
        log.note(slow)

    # The data: read and checked by the main rank, the same for all.
    index, data = ranks.on_main(lambda: check_images(found, config.data))
    for reason in data.skipped:
        log.note(f"left out of training: {reason}")
    samples = index.split("train")
    sampler = EpochSampler(len(samples), t.batch_size, t.seed, rank=ranks.rank, world=ranks.world)
    description = describe(config, len(index.classes))
    validator = Validator(index.split("val"), config, ranks)

    # The run: continued where it stopped, or begun. Nothing in the folder changes before all checks are done.
    progress = Progress()
    notes: list[str] = []
    state = ranks.on_main(lambda: last_state(folder, log)) if resume else None
    if state is None:
        ranks.on_main(lambda: write_provenance(folder, config, data, weights, ranks))
    else:
        require_parts(state, PARTS)
        load_model_state(model, state["model"], here=description, there=state["describes"])
        ranks.on_main(lambda: check_same_run(folder, config, data, weights))
        train_step.load_optimizer(state)
        progress = Progress.of(state)
        if progress.epoch > t.epochs:
            raise ConfigError(f"train.epochs {t.epochs}: {folder.path} has {progress.epoch} epochs already")
        notes += ranks.on_main(lambda: renew_provenance(folder, config, ranks))
    guides = None
    if config.refine is not None:
        maps = prepare_maps(config, folder, index, samples, ranks)
        guides = Guides(maps, config.data.resize, config.refine)
    loader = make_train_loader(
        samples,
        sampler,
        resize=config.data.resize,
        side=config.data.image_size,
        seed=t.seed,
        workers=config.data.workers,
        pad=config.data.pad,
        flip=config.data.flip,
        label_pixels=guides,
    )
    random_state.seed_everything(t.seed + ranks.rank)
    if state is not None and len(state["random"]) == ranks.world:
        random_state.restore(state["random"][ranks.rank], train_step)
    elif state is not None:
        notes.append(f"{len(state['random'])} processes before, {ranks.world} now: not the same bit for bit")
    ranks.on_main(lambda: folder.diverged.unlink(missing_ok=True))  # of the attempt before this one
    for text in notes:
        log.note(text)
    log.start(folder.tensorboard, progress.epoch)
    log.say(
        f"{description}: {len(samples)} training images, {sampler.steps} steps of {t.batch_size} in each of "
        f"{t.epochs} epochs, lr {t.lr:g}, on {ranks.world} x {ranks.device}; run folder {folder.path}"
    )
    if state is not None:
        log.say(f"continuing after {progress.epoch} epochs and {progress.step} steps")
    return Session(
        config=config,
        ranks=ranks,
        folder=folder,
        log=log,
        description=description,
        samples=samples,
        sampler=sampler,
        loader=loader,
        validator=validator,
        train_step=train_step,
        progress=progress,
    )
