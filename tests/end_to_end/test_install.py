"""The wheel works without the repository: code, configs, tables and templates are in the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from wsol.shipped_configs import shipped_configs

OWN = """\
data: {name: synthetic, species: 2, train: 6, test: 3, size: 64, image_size: 64, resize: 64, workers: 0}
model: {backbone: tiny, weights: none, head: {name: danet, channels: 4, levels: [species]}}
train: {epochs: 1, batch_size: 4, device: cpu}
"""
SECOND = """\
model: {backbone: tiny, weights: none, head: {name: foreground, channels: 4}}
train: {epochs: 1, batch_size: 4, device: cpu}
"""


@pytest.mark.long
@pytest.mark.timeout(900)  # a dozen processes, each of which imports torch
def test_the_wheel_works_outside_of_the_clone(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77")
    source = tmp_path / "source"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repository, check=True, capture_output=True).stdout
    for name in listed.decode().strip("\0").split("\0"):
        if name.startswith(("wsol/", "gpca/", "configs/")) or "/" not in name:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(repository / name, source / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(wheel, check=True)

    # An environment of its own, which sees the packages of this one, but not what is installed as editable.
    home = tmp_path / "environment"
    venv.create(home)
    python = str(home / "bin" / "python")
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    (packages / "these.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    (built,) = tmp_path.glob("wsol-*.whl")
    # pip would take the editable copy for an installed one: it is not to look at it.
    install = [*pip, "--python", python, "install", "--no-deps", "--ignore-installed", str(built)]
    subprocess.run(install, check=True)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}

    def wsol(*arguments: str) -> str:
        command = [str(home / "bin" / "wsol"), *arguments]
        done = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = [python, "-c", "import gpca, wsol; print(wsol.__file__)"]
    found = subprocess.run(where, cwd=elsewhere, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(packages)), "the installed copy, not the repository"

    names = [line.split()[0] for line in wsol("configs").splitlines()]
    assert names == list(shipped_configs()), "the same as in the repository"
    assert "blocks4_0" in wsol("model", "cub/mobilenet_v1_adl_gpca", "--set", "model.weights=none")
    assert "wsoleval-v2" in wsol("list", "protocols")
    assert "GPCA paper" in wsol("compare", "--published"), "the tables of published results"
    (elsewhere / "demo.yaml").write_text(OWN)  # smaller ones than the demo's own: a file beside wins
    (elsewhere / "demo_refine.yaml").write_text(SECOND)
    assert "the demo took" in wsol("demo", "--out", "demo")
    report = elsewhere / "demo" / "run" / "report.html"
    assert "<!doctype html>" in report.read_text().lower()[:100], "the templates"
