"""What all tests share: quiet threads, and the real data and weights where they are at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.configs import MakeConfig, tiny_config

if TYPE_CHECKING:
    from wsol.runs.ranks import Ranks

os.environ.setdefault("MPLBACKEND", "Agg")
# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("wsol", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("wsol")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """A folder with `cub40/` (real birds) and `weights/` (ImageNet weights), which are not published here.

    Looked for at $WSOL_SHARED and beside the repository; the tests that need it skip where it is absent.
    """
    path = Path(os.environ.get("WSOL_SHARED", ROOT.parent / "shared"))
    if not (path / "cub40" / "CUB_200_2011" / "images.txt").is_file() or not (path / "weights").is_dir():
        pytest.skip("needs real images and weights: set WSOL_SHARED to a folder with cub40/ and weights/")
    return path


@pytest.fixture(scope="session")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small data set of painted birds: 4 species of 2 families, 10 training and 4 test images of each."""
    from wsol.data.synthetic.paint import make_dataset

    root = tmp_path_factory.mktemp("data") / "birds"
    return make_dataset(root, species=4, train=10, test=4, size=72, seed=0, progress=False)


@pytest.fixture
def make_config(birds: Path) -> MakeConfig:
    """`tiny_config` on those birds: `make_config("adl", train__lr=0.1)`."""
    return partial(tiny_config, birds)


@pytest.fixture
def alone() -> Ranks:
    """A single process on the CPU."""
    from wsol.runs.ranks import Ranks

    return Ranks.alone()


@pytest.fixture(scope="session")
def trained_once(birds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of the tiny localizer after its two epochs. Not to be changed: see `trained`."""
    from tests.helpers.training import train_run

    path = tmp_path_factory.mktemp("runs") / "trained"
    assert train_run(tiny_config(birds), path) == 0
    return path


@pytest.fixture
def trained(trained_once: Path, tmp_path: Path) -> Path:
    """A copy of the trained run, which a test may damage. `make_config()` is its config."""
    return shutil.copytree(trained_once, tmp_path / "trained")


@pytest.fixture
def wsol() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `python -m wsol ...` with piped output; what still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object, **settings: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "wsol", *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
        started.append(subprocess.Popen(command, **{**pipes, **settings}))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()
