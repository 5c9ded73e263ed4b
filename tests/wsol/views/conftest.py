"""A small run on painted birds, trained for one epoch, once for all tests of the views."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wsol.cli import main

CONFIG = """\
data: {{name: cub, root: {root}, image_size: 64, resize: 72, workers: 0}}
model: {{backbone: tiny, weights: none, attention: {attention}, head: {{name: cam, channels: 16}}}}
train: {{epochs: 1, batch_size: 10, device: cpu}}
"""


def train(birds: Path, folder: Path, attention: str) -> Path:
    config = folder / f"{attention}.yaml"
    config.write_text(CONFIG.format(root=birds, attention=attention))
    assert main(["train", str(config), "--run-dir", str(folder / attention)]) == 0
    return folder / attention


@pytest.fixture(scope="session")
def se_run(birds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a tiny localizer with SE attention."""
    return train(birds, tmp_path_factory.mktemp("runs"), "se")


@pytest.fixture(scope="session")
def gpca_run(birds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with GPCA attention."""
    return train(birds, tmp_path_factory.mktemp("runs"), "gpca")


@pytest.fixture(scope="session")
def evaluated(se_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run with SE, evaluated: predictions and scores."""
    run = shutil.copytree(se_run, tmp_path_factory.mktemp("evaluated") / "se")
    assert main(["evaluate", str(run), "--device", "cpu"]) == 0
    return run
