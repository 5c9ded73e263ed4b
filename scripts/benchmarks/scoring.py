"""How fast maps become numbers: against one contour pass per threshold, and beside the forward pass."""

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from scripts.benchmarks.timing import Ratio, readable, time_side_by_side
from wsol.config import Backbone, Model
from wsol.data.dataset import make_eval_loader
from wsol.data.faults import Faults
from wsol.data.index import read_dataset
from wsol.data.synthetic.paint import make_dataset
from wsol.data.transforms import View
from wsol.localization.predictions import Header, Predictions
from wsol.localization.predictor import predict
from wsol.models.localizer import Localizer, build_localizer
from wsol.records import DataIndex
from wsol.runs.ranks import Ranks
from wsol.scoring.blocks import choose_workers
from wsol.scoring.image import ImageScorer
from wsol.scoring.protocols import WSOLEVAL_V2, find_protocols
from wsol.scoring.score import score_maps

SIDE, BATCH, IMAGES, WORKERS = 224, 16, 128, 2
ROUNDS = 5
FURTHER = ("gpca", "wsoleval-v1", "danet", "tscam")  # those with the same test image


def run() -> list[Ratio]:
    return [against_straight(), *beside_the_forward_pass()]


# --- boxes at a thousand thresholds, on one thread


def activation_maps(num: int) -> list[NDArray[np.float64]]:
    """Maps like those of a trained network: a few blobs on faint noise, 14 x 14."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:14, :14]
    maps = []
    for _ in range(num):
        raw = rng.normal(0, 0.03, (14, 14))
        for _ in range(3):
            cx, cy, spread = rng.uniform(2, 12), rng.uniform(2, 12), rng.uniform(1, 3)
            raw += rng.uniform(0.3, 1) * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * spread**2))
        maps.append(raw)
    return maps


TRUTH = (60, 50, 170, 160)


def straight(raw: NDArray[np.float64]) -> list[float]:
    """The best overlap of any contour at each of 1,000 thresholds: one contour pass for each."""
    resized = cv2.resize(raw, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
    image = ((resized - resized.min()) / (resized.max() - resized.min()) * 255).astype(np.uint8)
    best = []
    for threshold in np.arange(0, 1, 0.001):
        _, binary = cv2.threshold(image, int(threshold * np.max(image)), 255, cv2.THRESH_BINARY)
        contours, _ = cv2.findContours(binary, cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)
        overlap = 0.0
        for contour in contours:
            x, y, w, h = cv2.boundingRect(contour)
            x1, y1 = min(x + w, SIDE - 1), min(y + h, SIDE - 1)
            width = max(min(x1, TRUTH[2]) - max(x, TRUTH[0]) + 1, 0)
            height = max(min(y1, TRUTH[3]) - max(y, TRUTH[1]) + 1, 0)
            own = (x1 - x + 1) * (y1 - y + 1)
            truth = (TRUTH[2] - TRUTH[0] + 1) * (TRUTH[3] - TRUTH[1] + 1)
            overlap = max(overlap, width * height / (own + truth - width * height))
        best.append(overlap)
    return best


def ours(raw: NDArray[np.float64]) -> list[float]:
    scorer = ImageScorer(raw, [TRUTH], (SIDE, SIDE), View("resize", SIDE))
    return scorer.find(WSOLEVAL_V2, WSOLEVAL_V2.extraction.thresholds).best.tolist()


def against_straight() -> Ratio:
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    maps = activation_maps(10)
    assert all(straight(raw) == ours(raw) for raw in maps)
    seconds = time_side_by_side(
        {
            "straight": lambda: [straight(raw) for raw in maps],
            "ours": lambda: [ours(raw) for raw in maps],
        }
    )
    cv2.setNumThreads(threads)
    detail = ", ".join(f"{name} {readable(value / len(maps))} a map" for name, value in seconds.items())
    return Ratio(
        "wsoleval-v2, 1,000 thresholds, straight / ours",
        seconds["straight"] / seconds["ours"],
        4,
        "at least",
        detail,
    )


# --- evaluation of a ResNet50 from image files


def beside_the_forward_pass() -> list[Ratio]:
    folder = Path(tempfile.mkdtemp())
    try:
        species = 8
        root = make_dataset(
            folder / "birds", species=species, train=1, test=IMAGES // species, size=400, seed=0
        )
        index = read_dataset(root, Faults())
        localizer = build_localizer(Model(Backbone.of("resnet50"), weights="none"), len(index.classes)).eval()
        return measure(localizer, index, folder)
    finally:
        shutil.rmtree(folder)


def measure(localizer: Localizer, index: DataIndex, folder: Path) -> list[Ratio]:
    view = View("resize", SIDE)
    loader = make_eval_loader(index.split("test"), view, batch=BATCH, workers=0)
    tensors = [batch.images for batch in loader]

    def forward() -> None:
        with torch.inference_mode():
            for images in tensors:
                localizer(images)

    def predicted() -> Predictions:
        samples = index.split("test")
        header = Header.of(index, samples, "test", view)
        return predict(localizer, samples, folder / "p", header, Ranks.alone(), batch=BATCH, workers=WORKERS)

    found = predicted()  # also warms up
    workers = choose_workers(10_000)  # as for a whole test set

    def scored(*names: str) -> Callable[[], object]:
        # The boxes cost the same, whatever ranks the classes: no ten crops are made here.
        protocols = [replace(p, classes_by="view") for p in find_protocols(names)]
        return lambda: score_maps(found, protocols, workers=workers)

    v2 = "wsoleval-v2"
    scored(v2)()  # starts the processes, which takes as long for ten thousand images
    parts: dict[str, Callable[[], object]] = {"forward": forward, "predict": predicted, v2: scored(v2)}
    parts |= {name: scored(v2, name) for name in FURTHER}
    times: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(ROUNDS):
        for name, part in parts.items():
            start = time.perf_counter()
            part()
            times[name].append(time.perf_counter() - start)
    # Ratios within a round, whose parts lie close together in time, and then the median of the rounds.
    rounds = {name: np.array(values) for name, values in times.items()}
    evaluate = rounds["predict"] + rounds[v2]
    details = {name: readable(float(np.median(v)) / len(found)) for name, v in rounds.items()}
    ratios = [
        Ratio(
            "ResNet50 from files under wsoleval-v2: forward / evaluate",
            float(np.median(rounds["forward"] / evaluate)),
            0.9,
            "at least",
            f"an image: forward {details['forward']}, predict {details['predict']}, score {details[v2]}",
        )
    ]
    for name in FURTHER:
        more = rounds[name] - rounds[v2]
        ratios.append(
            Ratio(
                f"{name} on top, of the whole evaluation",
                float(np.median(more / evaluate)),
                0.03,
                "at most",
                readable(float(np.median(more)) / len(found)),
            )
        )
    return ratios
