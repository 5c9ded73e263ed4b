"""The training loop: it reads from top to bottom, and everything that it uses is prepared in `setup`."""

from __future__ import annotations

import math
from pathlib import Path

from wsol.config import Config
from wsol.data.dataset import Batch
from wsol.errors import TrainingDiverged
from wsol.runs.folder import RunFolder
from wsol.runs.ranks import Ranks
from wsol.training.log import EpochSums, to_csv
from wsol.training.schedules import make_schedule
from wsol.training.setup import Run, prepare
from wsol.training.signals import StopSignal


def train(config: Config, run_dir: Path, resume: bool, ranks: Ranks, stop: StopSignal) -> int:
    """Train to the end, or to a signal. Returns the exit code: 0, or 128 + the signal's number.

    Every rank of a run calls this. Raises WsolError; TrainingDiverged where the loss is no longer a number.
    """
    folder = RunFolder(run_dir)
    try:
        return go_through_epochs(prepare(config, folder, resume, ranks), stop)
    finally:
        folder.release()


def go_through_epochs(run: Run, stop: StopSignal) -> int:
    """The loop, from where the run stands."""
    t, ranks = run.config.train, run.ranks
    learner, progress, log = run.learner, run.progress, run.log
    steps = run.sampler.steps
    schedule = make_schedule(t.schedule, t.epochs, steps)

    for epoch in range(progress.epoch, t.epochs):
        learner.localizer.train()
        run.sampler.set_epoch(epoch, progress.step)
        progress.sums.start_clock()
        with log.bar(epoch, steps * t.batch_size, progress.step * t.batch_size) as bar:
            for batch in run.loader:
                rate = t.lr * schedule(epoch * steps + progress.step)
                learner.set_rate(rate)
                learner.set_epoch(epoch + progress.step / steps)
                figures = learner.backward(batch)
                norm = learner.gradient_norm()
                totals = ranks.sum({**figures, "stop": float(stop.number is not None)})
                stopping = totals.pop("stop") > 0
                if not math.isfinite(totals["loss"]) or not (math.isfinite(norm) or learner.skips_overflow):
                    own = math.isfinite(figures["loss"])
                    raise diverged(run, batch, own, totals["loss"] / totals["images"], rate, norm)
                learner.update()
                progress.step += 1
                progress.sums.add(
                    {**totals, "gradient_norm": norm * totals["images"]} if math.isfinite(norm) else totals
                )
                log.step(bar, progress.sums, rate, int(totals["images"]))
                if stopping:
                    run.save()
                    log.say(
                        f"stopped after step {progress.step} of epoch {epoch + 1}; --resume continues there"
                    )
                    return stop.exit_code
                if t.checkpoint_every and progress.step % t.checkpoint_every == 0:
                    run.save()

        row = {"epoch": epoch + 1, "lr": t.lr * schedule(epoch * steps + steps - 1), **progress.sums.means()}
        row["images_per_second"] = progress.sums.sums["images"] / progress.sums.seconds
        if (epoch + 1) % t.validate_every == 0 or epoch + 1 == t.epochs:
            row |= run.validator.figures(learner.localizer)
        row["seconds"] = progress.sums.seconds
        best = "val_top1_cls" in row and row["val_top1_cls"] >= max(
            (r["val_top1_cls"] for r in progress.history if "val_top1_cls" in r), default=0.0
        )
        progress.history.append(row)
        progress.epoch, progress.step, progress.sums = epoch + 1, 0, EpochSums()
        ranks.on_main(lambda: run.folder.write(run.folder.metrics, to_csv(progress.history)))
        run.save(best)
        log.epoch(progress.history)
        if ranks.sum({"stop": float(stop.number is not None)})["stop"] > 0 and progress.epoch < t.epochs:
            log.say(f"stopped after epoch {epoch + 1}; --resume continues there")
            return stop.exit_code

    log.close()
    return 0


def diverged(
    run: Run, batch: Batch, own_is_finite: bool, loss: float, rate: float, norm: float
) -> TrainingDiverged:
    """The error that names the images of the step; diverged.json has them all. No checkpoint is touched.

    own_is_finite: whether the loss of this rank's share is. loss: the mean over the batch.
    """
    names = [run.samples[i].name for i in batch.indices.tolist()]
    everyone = run.ranks.gather((own_is_finite, names))
    # Where only some ranks have no finite loss, the cause is in their share of the batch.
    guilty = [n for finite, share in everyone if not finite for n in share]
    images = guilty or [n for _, share in everyone for n in share]
    progress = run.progress
    record = {
        "epoch": progress.epoch + 1,
        "step": progress.step + 1,
        "loss": repr(loss),
        "lr": rate,
        "gradient_norm": repr(norm),
        "images": images,
    }
    path = run.folder.diverged
    run.ranks.on_main(lambda: run.folder.write_json(path, record))
    last = run.folder.checkpoints.last
    kept = f"{last} is from before" if last.exists() else "no checkpoint was made yet"
    return TrainingDiverged(
        f"loss {loss:g}, gradient norm {norm:g} at lr {rate:g} in step {progress.step + 1} of epoch "
        f"{progress.epoch + 1}, which was not taken; {kept}; images: {', '.join(images[:4])}"
        + (f" and {len(images) - 4} more, all in {path}" if len(images) > 4 else "")
        + "; try a new run with a smaller lr, a warm-up or train.clip_norm"
    )
