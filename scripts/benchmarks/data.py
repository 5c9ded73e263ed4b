"""Loading: decoding and seeded augmentation of real photographs, against the work that cannot be avoided."""

import os
import statistics
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from scripts.benchmarks.timing import Ratio, readable, time_side_by_side
from wsol.config import Data
from wsol.data.dataset import EpochSampler, make_train_loader
from wsol.data.faults import Faults
from wsol.data.image import read_image
from wsol.data.image_cache import NAME
from wsol.data.index import open_dataset, refuse_bad_images
from wsol.data.sets.cub import Cub
from wsol.data.synthetic.paint import make_dataset
from wsol.records import Sample

PER_CORE = 400  # images a second that one core has to load, at least
ROOT = Path(__file__).resolve().parents[2]


def run() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as scratch:
        source, samples = find_samples(Path(scratch))
        return [
            loader_rate(source, samples),
            *over_bare_work(samples),
            large_photographs(Path(scratch)),
            second_start(Path(scratch)),
        ]


def find_samples(scratch: Path) -> tuple[str, tuple[Sample, ...]]:
    """Real birds where they are at hand (see tests/conftest.py), painted ones of their size else."""
    real = Path(os.environ.get("WSOL_SHARED", ROOT.parent / "shared")) / "cub40" / "CUB_200_2011"
    if real.is_dir():
        return "cub40", Cub().read(real, Faults()).split("train")
    painted = make_dataset(scratch / "birds", species=10, train=40, test=0, size=320, progress=False)
    return "painted birds", Cub().read(painted, Faults()).split("train")


def loader_rate(source: str, samples: tuple[Sample, ...]) -> Ratio:
    """Images for each second of one core. The core's time is taken, not the clock's: other work may run."""
    cv2.setNumThreads(0)
    sampler = EpochSampler(len(samples), 32, seed=0)
    loader = make_train_loader(samples, sampler, resize=256, side=224, seed=0)
    rates = []
    for epoch in range(3):  # the first warms up the file cache
        sampler.set_epoch(epoch)
        start = time.process_time()
        images = sum(len(batch.images) for batch in loader)
        rates.append(images / (time.process_time() - start))
    rate = max(rates)
    return Ratio(
        f"training images of {source} at 224 per core second / {PER_CORE}",
        rate / PER_CORE,
        1.0,
        "at least",
        f"{rate:.0f} images/s",
    )


def over_bare_work(samples: tuple[Sample, ...]) -> list[Ratio]:
    """Everything that loading does, against only decoding the files, and against decoding and resizing them.

    The resize is the test's, antialiased, which alone takes longer than a decode.
    """
    chosen = samples[:64]
    sampler = EpochSampler(len(chosen), len(chosen), seed=0)
    loader = make_train_loader(chosen, sampler, resize=256, side=224, seed=0)

    def decode() -> None:
        for sample in chosen:
            np.asarray(Image.open(sample.path).convert("RGB"))

    def decode_and_resize() -> None:
        for sample in chosen:
            image = Image.open(sample.path).convert("RGB")
            np.asarray(image.resize((256, 256), Image.Resampling.BILINEAR))

    parts = {"decode": decode, "decode and resize": decode_and_resize}
    times = time_side_by_side({"load": lambda: list(loader), **parts})
    return [
        Ratio(
            f"loading with augmentation / bare {name}",
            times["load"] / times[name],
            bound,
            "at most",
            f"{readable(times['load'] / 64)} against {readable(times[name] / 64)} an image",
        )
        for name, bound in (("decode", 3.0), ("decode and resize", 1.5))
    ]


def large_photographs(scratch: Path) -> Ratio:
    """Training shrinks a photograph anyway, so it need not be decoded in full."""
    path = scratch / "photograph.jpg"
    small = np.random.default_rng(0).integers(0, 256, (100, 150, 3), dtype=np.uint8)
    Image.fromarray(small).resize((3000, 2000), Image.Resampling.BICUBIC).save(path, quality=90)
    times = time_side_by_side(
        {"full": lambda: read_image(path), "training": lambda: read_image(path, at_least=256)}
    )
    detail = f"{readable(times['full'])} against {readable(times['training'])}"
    return Ratio(
        "full decode / training decode of 3000 x 2000",
        times["full"] / times["training"],
        2.0,
        "at least",
        detail,
    )


def second_start(scratch: Path) -> Ratio:
    """Images are decoded at the first start of a training; later ones only ask whether a file has changed."""
    root = make_dataset(scratch / "started", species=10, train=30, test=10, size=320, progress=False)
    data = Data.of("cub", root=root)

    def seconds() -> float:
        begin = time.process_time()
        refuse_bad_images(open_dataset(data), "stop")
        return time.process_time() - begin

    first = []
    for _ in range(3):
        (root / NAME).unlink(missing_ok=True)
        first.append(seconds())
    second = [seconds() for _ in range(5)]
    return Ratio(
        "opening and checking 400 images: second start / first start",
        statistics.median(second) / statistics.median(first),
        0.2,
        "at most",
        f"{readable(statistics.median(second))} against {readable(statistics.median(first))}",
    )
