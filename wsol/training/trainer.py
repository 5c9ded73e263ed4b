"""The training loop. Everything that it uses is prepared in `setup`."""

from __future__ import annotations

import math
from pathlib import Path

from wsol.config import Config
from wsol.cores import torch_threads
from wsol.data.dataset import Batch
from wsol.errors import TrainingDiverged
from wsol.freed_memory import freed_memory_kept
from wsol.runs.folder import RunFolder
from wsol.runs.history import to_csv
from wsol.runs.ranks import Ranks
from wsol.training.fitting import fit
from wsol.training.log import EpochSums
from wsol.training.schedules import make_schedule
from wsol.training.setup import Session, prepare
from wsol.training.signals import StopSignal


def train(
    config: Config, run_dir: Path, resume: bool, ranks: Ranks, stop: StopSignal, progress: bool = True
) -> int:
    """Train to the end, or to a signal. Returns the exit code: 0, or 128 + the signal's number.

    progress: whether to print a line for each epoch. Every rank of a run calls this.

    Raises WsolError; TrainingDiverged where the loss is no longer a number.
    """
    with torch_threads(config.train.threads):
        if config.network is None and config.model.head.fitted:
            return fit(config, run_dir, resume, ranks, stop, progress)
        return _train(config, run_dir, resume, ranks, stop, progress)


def _train(
    config: Config, run_dir: Path, resume: bool, ranks: Ranks, stop: StopSignal, progress: bool
) -> int:
    folder = RunFolder(run_dir)
    try:
        session = prepare(config, folder, resume, ranks, progress)
    except BaseException:
        folder.abandon()  # a failed start leaves no half run folder
        raise
    try:
        with freed_memory_kept():
            return go_through_epochs(session, stop)
    finally:
        session.log.close()
        folder.release()


def go_through_epochs(session: Session, stop: StopSignal) -> int:
    """The loop, from where the run stands."""
    t, ranks = session.config.train, session.ranks
    train_step, progress, log = session.train_step, session.progress, session.log
    steps = session.sampler.steps
    schedule = make_schedule(t.schedule, t.epochs, steps)

    for epoch in range(progress.epoch, t.epochs):
        train_step.model.train()
        session.sampler.set_epoch(epoch, progress.step)
        progress.sums.start_clock()
        with log.bar(epoch, steps * t.batch_size, progress.step * t.batch_size) as bar:
            for batch in session.loader:
                rate = t.lr * schedule(epoch * steps + progress.step)
                train_step.set_rate(rate)
                train_step.set_epoch(epoch + progress.step / steps)
                figures = train_step.backward(batch)
                norm = train_step.gradient_norm()
                totals = ranks.sum({**figures, "stop": float(stop.number is not None)})
                stopping = totals.pop("stop") > 0
                steady = math.isfinite(norm) or train_step.skips_overflow
                if not (math.isfinite(totals["loss"]) and steady):
                    own = math.isfinite(figures["loss"])
                    raise diverged(session, batch, own, totals["loss"] / totals["images"], rate, norm)
                train_step.update()
                progress.step += 1
                progress.sums.add(
                    {**totals, "gradient_norm": norm * totals["images"]} if math.isfinite(norm) else totals
                )
                log.step(bar, progress.sums, rate, int(totals["images"]))
                if stopping:
                    session.save()
                    log.say(
                        f"stopped after step {progress.step} of epoch {epoch + 1}; --resume continues there"
                    )
                    return stop.exit_code
                if t.checkpoint_every and progress.step % t.checkpoint_every == 0:
                    session.save()

        row = {"epoch": epoch + 1, "lr": t.lr * schedule(epoch * steps + steps - 1), **progress.sums.means()}
        row |= train_step.model.scalars()
        row["images_per_second"] = progress.sums.sums["images"] / progress.sums.seconds
        if (epoch + 1) % t.validate_every == 0 or epoch + 1 == t.epochs:
            row |= session.validator.figures(train_step.model)
        row["seconds"] = progress.sums.seconds
        best = "val_top1_cls" in row and row["val_top1_cls"] >= max(
            (r["val_top1_cls"] for r in progress.history if "val_top1_cls" in r), default=0.0
        )
        progress.history.append(row)
        progress.epoch, progress.step, progress.sums = epoch + 1, 0, EpochSums()
        ranks.on_main(lambda: session.folder.write(session.folder.metrics, to_csv(progress.history)))
        session.save(best)
        log.epoch(progress.history)
        if ranks.sum({"stop": float(stop.number is not None)})["stop"] > 0 and progress.epoch < t.epochs:
            log.say(f"stopped after epoch {epoch + 1}; --resume continues there")
            return stop.exit_code

    return 0


def diverged(
    session: Session, batch: Batch, own_is_finite: bool, loss: float, rate: float, norm: float
) -> TrainingDiverged:
    """The error that names the images of the step; diverged.json has them all. No checkpoint is touched.

    own_is_finite: whether the loss of this rank's share is. loss: the mean over the batch.
    """
    names = [session.samples[i].name for i in batch.indices.tolist()]
    everyone = session.ranks.gather((own_is_finite, names))
    # Where only some ranks have no finite loss, the cause is in their share of the batch.
    failed = [n for finite, share in everyone if not finite for n in share]
    images = failed or [n for _, share in everyone for n in share]
    progress = session.progress
    record = {
        "epoch": progress.epoch + 1,
        "step": progress.step + 1,
        "loss": repr(loss),
        "lr": rate,
        "gradient_norm": repr(norm),
        "images": images,
    }
    path = session.folder.diverged
    session.ranks.on_main(lambda: session.folder.write_json(path, record))
    last = session.folder.checkpoints.last
    kept = f"{last} is from before" if last.exists() else "no checkpoint was made yet"
    return TrainingDiverged(
        f"loss {loss:g}, gradient norm {norm:g} at lr {rate:g} in step {progress.step + 1} of epoch "
        f"{progress.epoch + 1}, which was not taken; {kept}; images: {', '.join(images[:4])}"
        + (f" and {len(images) - 4} more, all in {path}" if len(images) > 4 else "")
        + "; try a new run with a smaller lr, a warm-up or train.clip_norm"
    )
