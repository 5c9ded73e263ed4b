"""What the readings of GPCA would do on the class maps of trained runs, before any training with them.

    python scripts/readings_on_trained_maps.py RUN...

Takes runs without attention (`attention: identity`), makes the class maps of the training images that they
held out, and gives these maps to a new GPCA of every reading. It prints the mean of the masks, their
deviation over the channels of an image, and the AUC of the true class's mask (0.5: the mask knows nothing of
the class), each as mean and standard deviation over the runs. No test image is looked at.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the packages beside this folder, installed or not

from wsol.cores import wait_passively  # noqa: E402

wait_passively()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from torch import Tensor  # noqa: E402

from gpca import GPCA  # noqa: E402
from gpca.readings import ReadingName  # noqa: E402
from wsol.data.dataset import Batch, make_eval_loader  # noqa: E402
from wsol.data.index import open_dataset  # noqa: E402
from wsol.data.transforms import View  # noqa: E402
from wsol.errors import ConfigError, WsolError  # noqa: E402
from wsol.run import Run  # noqa: E402
from wsol.scoring.mask_effect import true_class_auc  # noqa: E402
from wsol.scoring.significance import Spread  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    try:
        print("\n".join(table([class_maps(Run(path)) for path in parser.parse_args().runs])))
    except WsolError as error:
        parser.error(str(error))


@torch.inference_mode()
def class_maps(run: Run) -> tuple[Tensor, NDArray[np.int64]]:
    """(N, C, h, w) the class maps of the held-out training images of a run, and their labels (N,)."""
    if run.config.model.attention.name != "identity":
        raise ConfigError(f"{run.path}: was trained with an attention; its class maps are masked already")
    samples = open_dataset(run.config.data).split("val")
    if not samples:
        raise ConfigError(f"{run.path}: held no training images out; train it with data.val_share above 0")
    localizer = run.localizer("auto").eval()
    maps, labels = [], []
    for item in make_eval_loader(samples, View("resize", run.config.data.image_size), batch=16):
        batch = Batch(*item)
        maps.append(localizer(batch.images.to(localizer.mean.device)).maps.cpu())
        labels.append(batch.labels)
    return torch.cat(maps), torch.cat(labels).numpy()


def table(runs: Sequence[tuple[Tensor, NDArray[np.int64]]]) -> Iterator[str]:
    images = sum(len(labels) for _, labels in runs)
    yield f"{len(runs)} runs, {images} held-out images, {runs[0][0].shape[1]} classes"
    yield ""
    yield "| reading | mask: mean | std over channels | AUC of the true class |"
    yield "|---|---|---|---|"
    for reading in get_args(ReadingName):
        masks = [(mask(reading, maps), labels) for maps, labels in runs]
        mean = Spread.of([float(v.mean()) for v, _ in masks])
        std = Spread.of([float(v.std(axis=1).mean()) for v, _ in masks])
        auc = Spread.of([float(true_class_auc(v, y).mean()) for v, y in masks])
        yield f"| `{reading}` | {show(mean, 4)} | {show(std, 5)} | {show(auc, 3)} |"


@torch.inference_mode()
def mask(reading: ReadingName, maps: Tensor) -> NDArray[np.float64]:
    """(N, C) the masks of a new GPCA. It sees the maps once in training mode, where `auto` measures theta."""
    attention = GPCA(maps.shape[1], reading=reading)
    attention(maps)
    attention.eval()(maps)
    found = attention.mask
    assert found is not None  # it was just computed
    return found.double().numpy()


def show(spread: Spread, places: int) -> str:
    text = f"{spread.mean:.{places}f}"
    return text if spread.n < 2 else f"{text} ± {spread.std:.{places}f}"


if __name__ == "__main__":
    main()
