"""The log of a run: a progress bar, one line and one row of figures for each epoch, TensorBoard."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from wsol.notices import note
from wsol.runs.history import Row

if TYPE_CHECKING:
    Bar = tqdm[Any]
else:
    Bar = tqdm


class EpochSums:
    """Sums over the steps of an epoch. Step checkpoints hold them, so a resumed epoch logs the same."""

    def __init__(self, sums: Mapping[str, float] | None = None, seconds: float = 0.0) -> None:
        self.sums: dict[str, float] = dict(sums or {})
        self._before = seconds
        self.start_clock()

    def start_clock(self) -> None:
        """Time counts from now on, on top of what a resumed epoch had."""
        self._started = time.monotonic()

    def add(self, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def mean(self, name: str) -> float:
        """The mean over the images so far of a figure that was added as its sum over images."""
        return self.sums[name] / self.sums["images"]

    def means(self) -> Row:
        return {name: self.mean(name) for name in self.sums if name != "images"}

    @property
    def seconds(self) -> float:
        return self._before + time.monotonic() - self._started

    def state(self) -> dict[str, Any]:
        return {"sums": dict(self.sums), "seconds": self.seconds}


class RunLog:
    """The log of a run: lines and a bar on the terminal where `progress` asks for them, and TensorBoard.

    On the ranks that are not the main one it does nothing.
    """

    def __init__(self, epochs: int, is_main: bool = True, progress: bool = True) -> None:
        self.epochs = epochs
        self._is_main = is_main
        self._shows = is_main and progress
        self._board: Any = None

    def start(self, tensorboard: Path, epoch: int) -> None:
        """Open TensorBoard where it is installed; what a former process logged after `epoch` is ignored."""
        if self._is_main:
            with suppress(ImportError):
                from torch.utils.tensorboard import SummaryWriter

                self._board = SummaryWriter(str(tensorboard), purge_step=epoch + 1)

    def say(self, text: str) -> None:
        if self._shows:
            tqdm.write(text, file=sys.stdout)
            sys.stdout.flush()

    def note(self, text: str) -> None:
        """Something worth knowing: a line of the log, or a Python warning where nothing is shown."""
        if self._shows:
            self.say(f"note: {text}")
        elif self._is_main:
            note(text)

    def bar(self, epoch: int, images: int, done: int) -> Bar:
        """The progress bar: images, images/s and the time left of this epoch."""
        return tqdm(
            total=images,
            initial=done,
            desc=f"epoch {epoch + 1}/{self.epochs}",
            unit=" images",
            file=sys.stderr,
            disable=None if self._shows else True,
            leave=False,
            dynamic_ncols=True,
        )

    def step(self, bar: Bar, sums: EpochSums, rate: float, images: int) -> None:
        if not bar.disable:
            figures = {"loss": f"{sums.mean('loss'):.3f}"}
            if "accuracy" in sums.sums:  # of a head that knows classes
                figures["acc"] = f"{100 * sums.mean('accuracy'):.1f} %"
            bar.set_postfix({**figures, "lr": f"{rate:.2g}"}, refresh=False)
        bar.update(images)

    def epoch(self, history: Sequence[Row]) -> None:
        """One line on the terminal for the newest row, and its figures to TensorBoard."""
        row = history[-1]
        left = (self.epochs - row["epoch"]) * statistics.median(r["seconds"] for r in history)
        self.say(epoch_line(row, self.epochs, left))
        if self._board is not None:
            for name, value in row.items():
                if name != "epoch":
                    self._board.add_scalar(name, value, int(row["epoch"]))
            self._board.flush()

    def close(self) -> None:
        if self._board is not None:
            self._board.close()


def epoch_line(row: Row, epochs: int, seconds_left: float) -> str:
    """`epoch 3/12  loss 2.310  acc 41.2 %  lr 0.0082  val cls 55.0 %  ...`"""
    width = len(str(epochs))
    parts = [
        f"epoch {int(row['epoch']):>{width}}/{epochs}",
        f"loss {row['loss']:.3f}",
        *([f"acc {100 * row['accuracy']:5.1f} %"] if "accuracy" in row else []),
        f"lr {row['lr']:.2g}",
    ]
    for name, words in (
        ("val_top1_cls", "val: cls"),
        ("val_top1_loc", "top-1 loc"),
        ("val_gt_known_loc", "GT-known" if "val_top1_cls" in row else "val: GT-known"),
    ):
        if name in row:
            parts.append(f"{words} {100 * row[name]:5.1f} %")
    if "mask_std" in row:
        parts.append(f"mask std {row['mask_std']:.1e}")
    parts.append(f"{row['images_per_second']:.0f} images/s")
    parts.append(
        f"{clock(row['seconds'])}, {clock(seconds_left)} left" if seconds_left else clock(row["seconds"])
    )
    return "  ".join(parts)


def clock(seconds: float) -> str:
    text = str(timedelta(seconds=round(seconds)))
    return text.removeprefix("0:").removeprefix("0") if text.startswith("0:") else text
