"""Everything that a run needs before its first step: the folder, the data, the model, and where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from wsol.config import Config, Data
from wsol.data.dataset import EpochSampler, TrainLoader, make_train_loader
from wsol.data.index import open_dataset, refuse_bad_images
from wsol.errors import ConfigError
from wsol.models.localizer import build_localizer
from wsol.records import DataIndex, Sample
from wsol.runs.checkpoint import load_model_state, require_parts
from wsol.runs.folder import DataRecord, RunFolder, describe
from wsol.runs.ranks import Ranks
from wsol.training import random_state
from wsol.training.log import EpochSums, Row, RunLog
from wsol.training.provenance import renew_identity, write_identity
from wsol.training.train_step import TrainStep
from wsol.training.validation import Validator

# What continues a run: of the learner, of the progress, and the rest.
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


def open_checked(data: Data) -> tuple[DataIndex, DataRecord]:
    """The data set with every image known to be readable, and what the run keeps of it."""
    index = open_dataset(data)
    usable, skipped = refuse_bad_images(index, data.on_bad_image)
    return usable, DataRecord.of(usable, index.digest(), skipped)


@dataclass
class Run:
    """A run ready to go on, as one rank sees it. The main rank alone writes."""

    config: Config
    ranks: Ranks
    folder: RunFolder
    log: RunLog
    words: str  # the model in a few words
    samples: Sequence[Sample]
    sampler: EpochSampler
    loader: TrainLoader
    validator: Validator
    learner: TrainStep
    progress: Progress

    def save(self, best: bool = False) -> None:
        """A checkpoint of everything that continues the run from here. Every rank calls this."""
        states = self.ranks.gather(random_state.capture(self.learner))

        def write() -> None:
            self.folder.checkpoints.save(
                {
                    **self.learner.state(),
                    **self.progress.state(),
                    "random": states,  # one of each rank
                    "describes": self.words,
                },
                best,
            )

        self.ranks.on_main(write)


def prepare(config: Config, folder: RunFolder, resume: bool, ranks: Ranks) -> Run:
    """Begin a run in the folder, or continue the one that is there."""
    t = config.train
    log = RunLog(t.epochs, silent=not ranks.is_main)
    ranks.on_main(lambda: folder.claim(resume))

    # The data: read and checked by the main rank, the same for all.
    index, data = ranks.on_main(lambda: open_checked(config.data))
    for reason in data.skipped:
        log.say(f"note: left out of training: {reason}")
    samples = index.split("train")
    sampler = EpochSampler(len(samples), t.batch_size, t.seed, rank=ranks.rank, world=ranks.world)
    loader = make_train_loader(
        samples,
        sampler,
        resize=config.data.resize,
        side=config.data.image_size,
        seed=t.seed,
        workers=config.data.workers,
    )

    # The model: the same weights, and the same draws of the drop blocks, on every rank.
    random_state.seed_everything(t.seed)
    localizer = build_localizer(config.model, len(index.classes), index.hierarchy, config.data.image_size)
    localizer.seed(t.seed)
    random_state.seed_everything(t.seed + ranks.rank)
    learner = TrainStep(localizer, t, ranks)
    words = describe(config, len(index.classes))

    # The run: continued where it stopped, or begun.
    progress = Progress()
    state = ranks.on_main(lambda: folder.checkpoints.load_last(log.say) if resume else None)
    if state is None:
        ranks.on_main(lambda: write_identity(folder, config, data, localizer.weights_report.to_dict(), ranks))
    else:
        require_parts(state, PARTS)
        load_model_state(localizer, state["model"], here=words, there=state["describes"])
        ranks.on_main(lambda: renew_identity(folder, config, data, localizer.weights_report.to_dict(), ranks))
        learner.load_optimizer(state)
        progress = Progress.of(state)
        if progress.epoch > t.epochs:
            raise ConfigError(f"train.epochs {t.epochs}: {folder.path} has {progress.epoch} epochs already")
        if len(state["random"]) == ranks.world:
            random_state.restore(state["random"][ranks.rank], learner)
        else:
            log.say(
                f"note: {len(state['random'])} processes before, {ranks.world} now: not the same bit for bit"
            )
    log.start(folder.tensorboard, progress.epoch)
    log.say(
        f"{words}: {len(samples)} training images, {sampler.steps} steps of {t.batch_size} in each of "
        f"{t.epochs} epochs, lr {t.lr:g}, on {ranks.world} x {ranks.device}; run folder {folder.path}"
    )
    if state is not None:
        log.say(f"continuing after {progress.epoch} epochs and {progress.step} steps")
    return Run(
        config=config,
        ranks=ranks,
        folder=folder,
        log=log,
        words=words,
        samples=samples,
        sampler=sampler,
        loader=loader,
        validator=Validator(index.split("val"), config, ranks),
        learner=learner,
        progress=progress,
    )
