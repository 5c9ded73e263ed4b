"""An installed copy works without the repository: code, tables and templates are in the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_an_installed_copy_works_elsewhere(repository: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{repository}", source], check=True)
    subprocess.run([*pip, "--target", target, source], check=True)

    def wsol(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "wsol", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(target), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = "import wsol; print(wsol.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", where],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found.startswith(str(target)), "the installed copy, not the repository"
    assert "wsoleval-v2" in wsol("list", "protocols")
    assert "GPCA paper" in wsol("compare", "--published"), "the tables of published results"
    (tmp_path / "c.yaml").write_text(
        "data: {name: synthetic, root: birds, species: 2, train: 4, test: 2, size: 64, image_size: 64,"
        " resize: 64, workers: 0}\n"
        "model: {backbone: tiny, weights: none, head: {name: danet, channels: 4, levels: [species]}}\n"
        "train: {epochs: 1, batch_size: 4, device: cpu}\n"
    )
    wsol("train", "c.yaml", "--run-dir", "run")
    wsol("evaluate", "run", "--device", "cpu")
    wsol("report", "run")
    assert "<!doctype html>" in (tmp_path / "run" / "report.html").read_text().lower()[:100], "the templates"
