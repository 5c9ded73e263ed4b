"""examples/plugins: one file of each kind, used from outside by the plain `wsol` command.

Every command runs in a process of its own that knows nothing but the config or the run folder.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import wsol
from wsol.registry import REGISTRIES

KINDS = {
    "drops": "strips",
    "heads": "lse",
    "attentions": "zscore",
    "backbones": "plain",
    "transforms": "grey",
    "optimizers": "rmsprop",
    "schedules": "linear",
    "datasets": "flat",
    "protocols": "tight",
    "metrics": "mean_iou",
    "map_methods": "loudest",
    "networks": "pixels",
}


def run_wsol(repository: Path, cwd: Path, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "wsol", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Painted birds in the layout of `dataset_flat.py`."""
    folder = tmp_path_factory.mktemp("flat")
    birds = wsol.open_dataset(wsol.paint_birds(folder / "birds", species=3, train=8, test=4, size=64))
    root = folder / "flat"
    root.mkdir()
    with (root / "flat.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "class", "split", "x0", "y0", "x1", "y1"])
        for sample in birds.samples:
            shutil.copy(sample.path, root / sample.path.name)
            writer.writerow([sample.path.name, birds.classes[sample.label], sample.split, *sample.boxes[0]])
    return root


def test_there_is_an_example_of_every_kind(repository: Path) -> None:
    assert set(KINDS) == set(REGISTRIES)
    files = {p.stem for p in (repository / "examples" / "plugins").glob("*.py")}
    assert files == {f"{kind.removesuffix('s')}_{name}" for kind, name in KINDS.items()}
    assert not any(name in REGISTRIES[kind].entries() for kind, name in KINDS.items()), "none is built in"
    listed = (repository / "examples" / "plugins" / "README.md").read_text()
    assert all(f"`{name}.py`" in listed for name in files)


@pytest.mark.long
def test_all_of_them_train_evaluate_and_report(repository: Path, flat: Path, tmp_path: Path) -> None:
    plugins = shutil.copytree(repository / "examples" / "plugins", tmp_path / "mine")
    config, run = plugins / "everything.yaml", tmp_path / "run"
    run_wsol(repository, tmp_path, "train", config, "--set", f"data.root={flat}", "--run-dir", run)
    record = json.loads((run / "plugins.json").read_text())["plugins"]
    assert {kind: names for one in record for kind, names in one["registered"].items()} == {
        kind: [name] for kind, name in KINDS.items()
    }
    table = run_wsol(repository, tmp_path, "evaluate", run, "--device", "cpu")
    assert "tight" in table
    assert "mean IoU" in table
    scores = json.loads((run / "scores.json").read_text())["protocols"]["tight"]
    assert 0 <= scores["mean_iou"] <= 100
    assert scores["intervals"]["mean_iou"][0] <= scores["mean_iou"] <= scores["intervals"]["mean_iou"][1]
    run_wsol(repository, tmp_path, "report", run)
    page = (run / "report.html").read_text()
    assert "mean IoU" in page
    assert "tight: cut at half" in page


@pytest.mark.long
def test_the_network_is_classified_with(repository: Path, flat: Path, tmp_path: Path) -> None:
    plugins = shutil.copytree(repository / "examples" / "plugins", tmp_path / "mine")
    config, run = plugins / "pixels.yaml", tmp_path / "run"
    config.write_text(
        "plugins: [network_pixels, dataset_flat]\n"
        "data: {name: flat, image_size: 32, resize: 32, workers: 0}\n"
        "network: {name: pixels, width: 4, attention: se, after: '1'}\n"
        "train: {epochs: 1, batch_size: 8}\n"
    )
    run_wsol(repository, tmp_path, "classify", config, "--set", f"data.root={flat}", "--run-dir", run)
    assert "top-1 error" in run_wsol(repository, tmp_path, "evaluate", run, "--device", "cpu")
