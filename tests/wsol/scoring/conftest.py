"""Predictions made by hand, and a run trained for one epoch on painted birds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from wsol.data.transforms import View
from wsol.localization.predictions import Header, Predictions, PredictionsWriter
from wsol.records import Box, DataIndex, Sample
from wsol.runs.files import new_draft_folder

SIDE = 32
Made = Callable[..., Predictions]


def fake_index(labels: Sequence[int], boxes: Sequence[Sequence[Box]], classes: int) -> DataIndex:
    samples = tuple(
        Sample(f"c{label}/{i}.jpg", Path(f"c{label}/{i}.jpg"), label, tuple(own), "test", (SIDE, SIDE))
        for i, (label, own) in enumerate(zip(labels, boxes, strict=True))
    )
    return DataIndex("fake", Path("fake"), samples, tuple(f"class {i}" for i in range(classes)))


@pytest.fixture
def make_predictions(tmp_path: Path) -> Made:
    """Predictions from arrays: maps (N, h, w), labels, boxes per image, scores (N, C)."""

    def make(
        maps: NDArray[np.floating],
        labels: Sequence[int],
        boxes: Sequence[Sequence[Box]],
        scores: NDArray[np.floating],
        masks: NDArray[np.floating] | None = None,
        failed: Sequence[int] = (),
        name: str = "test-resize",
    ) -> Predictions:
        index = fake_index(labels, boxes, scores.shape[1])
        folder = tmp_path / "predictions" / name
        header = Header.of(index, index.samples, "test", View("resize", SIDE), "by hand", "digest")
        writer = PredictionsWriter(folder, new_draft_folder(folder, parents=True), header)
        writer.start(labels, [s.size for s in index.samples])
        both = np.stack([maps, maps], axis=1).astype(np.float32)
        unread = np.isin(np.arange(len(labels)), failed)
        rows = np.arange(len(labels))
        own = None if masks is None else masks.astype(np.float32)
        writer.write(rows, scores.astype(np.float32), both, unread, own)
        return writer.finish()

    return make


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder: a tiny network with attention, one epoch on painted birds."""
    from wsol.cli import main
    from wsol.data.synthetic.paint import make_dataset

    root = tmp_path_factory.mktemp("small")
    make_dataset(root / "birds", species=4, train=6, test=5, size=96, seed=0)
    config = root / "small.yaml"
    config.write_text(
        f"data: {{name: cub, root: {root / 'birds'}, image_size: 64, resize: 72, workers: 0}}\n"
        "model: {backbone: tiny, weights: none, head: {name: cam, channels: 8}, attention: gpca}\n"
        "train: {epochs: 1, batch_size: 8, lr: 0.05, device: cpu}\n"
    )
    assert main(["train", str(config), "--run-dir", str(root / "run")]) == 0
    return root / "run"
