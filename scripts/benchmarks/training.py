"""Training: what files, log and checks cost beside the bare step, and whether memory stays where it is."""

import math
import resource
import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch.nn import functional as F

from scripts.benchmarks.timing import Ratio, readable
from wsol import config
from wsol.data.synthetic.paint import make_dataset
from wsol.models.localizer import build_localizer
from wsol.runs.folder import RunFolder
from wsol.runs.history import read_csv
from wsol.runs.ranks import Ranks
from wsol.training.optimizer import make_optimizer
from wsol.training.signals import StopSignal
from wsol.training.trainer import train

BATCH = 16
SPEED_BOUND = 0.92  # of the bare step's speed
MEMORY_BOUND = 1.02  # times the memory of the early epochs
ALONE = Ranks(0, 1, torch.device("cpu"))


def run() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        birds = make_dataset(folder / "birds", species=4, train=48, test=1, size=320, progress=False)
        return [speed(birds, folder), loader_processes(birds, folder), memory(birds, folder)]


def speed(birds: Path, folder: Path, rounds: int = 1) -> Ratio:
    """`wsol train` itself against forward, backward and update on a batch in memory, turn by turn.

    The first epoch of each run starts the loader's workers and is left out.
    """
    model = config.Model(config.Backbone("resnet50"), "none", head=config.Head.of("cam", channels=256))
    settings = config.Config(
        data=config.Data(root=birds, image_size=224, resize=256, workers=2),
        model=model,
        train=config.Train(epochs=3, batch_size=BATCH, device="cpu"),
    )
    localizer = build_localizer(model, classes=4).train()
    optimizer = make_optimizer(localizer, settings.train)
    images = torch.rand(BATCH, 3, 224, 224)
    labels = torch.arange(BATCH) % 4

    def bare_step() -> float:
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(localizer(images).logits, labels).backward()
        optimizer.step()
        return time.perf_counter() - start

    bare, whole = [], []
    bare_step()
    for number in range(rounds):
        bare += [bare_step() for _ in range(4)]
        run_dir = folder / f"speed{number}"
        train(settings, run_dir, False, ALONE, StopSignal())
        rows = read_csv(RunFolder(run_dir).metrics)
        whole += [BATCH / row["images_per_second"] for row in rows[1:]]
        bare += [bare_step() for _ in range(4)]
    in_memory, from_files = statistics.median(bare), statistics.median(whole)
    return Ratio(
        "ResNet50 at 224: training from files / bare step in memory",
        in_memory / from_files,
        SPEED_BOUND,
        "at least",
        f"batch of {BATCH}: {readable(in_memory)} bare, {readable(from_files)} from files",
    )


def loader_processes(birds: Path, folder: Path, rounds: int = 2) -> Ratio:
    """The small network, for which loading is a large part: two processes that load, against none."""
    times: dict[int, list[float]] = {0: [], 2: []}
    for number in range(rounds):
        for workers, seconds in times.items():
            settings = config.Config(
                data=config.Data(root=birds, image_size=128, resize=144, workers=workers),
                model=config.Model(config.Backbone("tiny"), "none", head=config.Head.of("cam", channels=64)),
                train=config.Train(epochs=4, batch_size=BATCH, device="cpu"),
            )
            run_dir = folder / f"workers{workers}-{number}"
            train(settings, run_dir, False, ALONE, StopSignal())
            rows = read_csv(RunFolder(run_dir).metrics)
            seconds += [1 / row["images_per_second"] for row in rows[1:]]
    none, two = (statistics.median(times[workers]) for workers in (0, 2))
    return Ratio(
        "tiny at 128: an image with data.workers 2 / with 0, by the clock",
        two / none,
        math.inf,
        "at most",
        f"{readable(two)} against {readable(none)}",
    )


class Watch(StopSignal):
    """Notes the memory of the process whenever the training loop asks for a signal: once in a step."""

    def __init__(self) -> None:
        self.megabytes: list[float] = []
        super().__init__()

    @property
    def number(self) -> int | None:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.megabytes.append(pages * resource.getpagesize() / 2**20)
        return None

    @number.setter
    def number(self, value: int | None) -> None:
        pass


def memory(birds: Path, folder: Path) -> Ratio:
    """Twenty epochs of a small network with everything switched on: late steps against early ones."""
    settings = config.Config(
        data=config.Data(root=birds, image_size=64, resize=72, workers=2, val_share=0.1),
        model=config.Model(
            config.Backbone("tiny"),
            "none",
            drop=config.Drop.of("adl"),
            head=config.Head.of("cam", channels=32),
            attention=config.Attention.of("gpca"),
        ),
        train=config.Train(epochs=20, batch_size=8, device="cpu", checkpoint_every=5),
    )
    watch = Watch()
    train(settings, folder / "memory", False, ALONE, watch)
    quarter = len(watch.megabytes) // 4
    early = statistics.mean(watch.megabytes[quarter : 2 * quarter])
    late = statistics.mean(watch.megabytes[-quarter:])
    return Ratio(
        "memory of training: last quarter of 20 epochs / second quarter",
        late / early,
        MEMORY_BOUND,
        "at most",
        f"{early:.0f} MB, then {late:.0f} MB",
    )
