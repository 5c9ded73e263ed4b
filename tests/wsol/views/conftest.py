"""An evaluated run made by hand, and small runs on painted birds that were trained for one epoch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.evaluated_runs import make_evaluated_run
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
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with predictions and scores under every protocol. Not to be changed."""
    return make_evaluated_run(tmp_path_factory.mktemp("evaluated") / "made", boxes=2, seed=1)
