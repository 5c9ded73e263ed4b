"""`wsol train` for heads that are fitted: one pass over training images, without labels, without gradients.

The run folder is that of any other run: `wsol evaluate`, `report`, `compare` and `export` take it as it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from wsol.config import Config
from wsol.data.dataset import make_eval_loader
from wsol.data.index import open_dataset
from wsol.data.take_evenly import take_evenly
from wsol.data.transforms import View
from wsol.method_names import describe, method_name
from wsol.models.heads.fitted import FittedHead
from wsol.models.localizer import Localizer, build_localizer
from wsol.records import Sample
from wsol.runs.checkpoint import load_model_state, require_parts
from wsol.runs.folder import RunFolder
from wsol.runs.history import Row, to_csv
from wsol.runs.ranks import Ranks
from wsol.scoring.protocols import find_protocols
from wsol.training.log import RunLog, clock
from wsol.training.provenance import check_same_run, require_same_config, write_provenance
from wsol.training.random_state import seed_everything
from wsol.training.setup import check_images, last_state
from wsol.training.signals import StopSignal


def fit(config: Config, run_dir: Path, resume: bool, ranks: Ranks, stop: StopSignal, progress: bool) -> int:
    """Fit the head of a config. Returns the exit code: 0, or 128 + the number of the signal that stopped it.

    A fit that was stopped leaves no checkpoint, and `resume` begins it again. Every rank of a run calls this.
    """
    folder, log = RunFolder(run_dir), RunLog(1, ranks.is_main, progress)
    require_same_config(config, ranks)
    ranks.on_main(lambda: folder.claim(resume))
    try:
        found = ranks.on_main(lambda: open_dataset(config.data))
        seed_everything(config.train.seed)
        classes, size = len(found.classes), config.data.image_size
        localizer = build_localizer(config.model, classes, found.hierarchy, size).to(ranks.device).eval()
        index, data = ranks.on_main(lambda: check_images(found, config.data))
        for reason in data.skipped:
            log.note(f"left out of the fit: {reason}")
        weights, description = localizer.weights_report.to_dict(), describe(config, classes)
        state = ranks.on_main(lambda: last_state(folder, log)) if resume else None
        if state is not None:
            require_parts(state, ("model", "epoch", "describes"))
            load_model_state(localizer, state["model"], here=description, there=state["describes"])
            ranks.on_main(lambda: check_same_run(folder, config, data, weights))
            log.say(f"{folder.path}: the head is fitted already")
            return 0
        ranks.on_main(lambda: write_provenance(folder, config, data, weights, ranks))
        row = _fit_head(localizer, index.split("train"), config, ranks, stop, log)
        if ranks.sum({"stop": float(stop.number is not None)})["stop"] > 0:
            log.say("stopped before the fit was complete; --resume begins it again")
            return stop.exit_code
        record = {"model": localizer.state_dict(), "epoch": 1, "describes": description, "history": [row]}
        ranks.on_main(lambda: folder.write(folder.metrics, to_csv([row])))
        ranks.on_main(lambda: folder.checkpoints.save(record))
        figures = ", ".join(f"{name.replace('_', ' ')} {100 * row[name]:.1f} %" for name in _shares(row))
        log.say(f"{description}: fitted to {row['images']:.0f} images in {clock(row['seconds'])}: {figures}")
        return 0
    except BaseException:
        folder.abandon()  # a fit that failed leaves no half run folder
        raise
    finally:
        folder.release()


def _fit_head(
    localizer: Localizer,
    samples: Sequence[Sample],
    config: Config,
    ranks: Ranks,
    stop: StopSignal,
    log: RunLog,
) -> Row:
    """Fit the head; returns the row of the run's log."""
    head = localizer.head
    assert isinstance(head, FittedHead), "a head that says `fitted` is a FittedHead"
    chosen = take_evenly(samples, head.images or len(samples))
    log.say(
        f"{method_name(config)} on {config.model.backbone.name}: one pass over {len(chosen):,} of "
        f"{len(samples):,} training images, without labels, on {ranks.world} x {ranks.device}"
    )
    loader = make_eval_loader(
        chosen,
        View(find_protocols(config.eval.protocol)[0].view, config.data.image_size),
        batch=config.train.batch_size,
        workers=config.data.workers,
        rank=ranks.rank,
        world=ranks.world,
    )
    bar = tqdm(total=len(chosen), unit=" images", desc="fitting", file=sys.stderr, disable=None, leave=False)

    @torch.inference_mode()
    def features() -> Iterator[dict[str, Tensor]]:
        for batch in loader:
            images = batch.images[~batch.failed].to(ranks.device)
            if len(images):
                yield localizer.backbone(localizer.normalise(images), localizer.taps, head.reads)
            bar.update(len(batch.indices) * ranks.world)
            if stop.number is not None:  # the other ranks end as soon as they have done their share
                return

    started = time.monotonic()
    with bar:
        figures = head.fit(features(), ranks.gather)
    seconds = time.monotonic() - started
    return {
        "epoch": 1,
        "images": len(chosen),
        **figures,
        "images_per_second": len(chosen) / seconds,
        "seconds": seconds,
    }


def _shares(row: Row) -> list[str]:
    """The figures of the head among the columns of the row."""
    return [name for name in row if name not in ("epoch", "images", "images_per_second", "seconds")]
