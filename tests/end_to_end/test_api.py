"""The Python interface: its examples, the script of the README, and what a notebook shows."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wsol
from tests.helpers.red_discs import write_photos

# Modules of the inside whose docstrings hold examples too.
INSIDE = (
    "wsol.text_table",
    "wsol.localization.cutter",
    "wsol.scoring.judge",
    "wsol.models.heads.targets",
    "wsol.views.box_files",
    "wsol.localization.feature_file",
    "wsol.data.take_evenly",
    "wsol.class_names",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the examples expect it: birds, bird.jpg, holiday, runs/demo and runs/other (evaluated)."""
    folder = tmp_path_factory.mktemp("examples")
    birds = wsol.paint_birds(folder / "birds", species=2, train=6, test=4, size=64)
    write_photos(folder / "holiday", 8)
    shutil.copy(wsol.open_dataset(birds).samples[0].path, folder / "bird.jpg")
    settings: dict[str, Any] = {
        "data": {"root": birds, "image_size": 64, "resize": 72, "workers": 0},
        "model": {"backbone": "tiny", "weights": "none", "head": {"name": "cam", "channels": 8}},
        "train": {"epochs": 2, "batch_size": 6, "device": "cpu"},
    }
    for name, attention in (("demo", "gpca"), ("other", "se")):
        run = wsol.train(settings, folder / "runs" / name, set={"model.attention": attention})
        wsol.evaluate(run, device="cpu")
    return folder


def examples(of: Any) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder(recurse=True).find(of, getattr(of, "__name__", "module"))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", [n for n in wsol.__all__ if n != "__version__"])
def test_the_example_of_a_public_name(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    tests = examples(getattr(wsol, name))
    assert tests, f"wsol.{name} has no example"
    for test in tests:
        run_example(test)


@pytest.mark.parametrize("name", INSIDE)
def test_the_examples_inside(name: str) -> None:
    tests = examples(importlib.import_module(name))
    assert tests, f"{name} has no example"
    for test in tests:
        run_example(test)


def run_example(test: doctest.DocTest) -> None:
    said: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert results.failed == 0, "".join(said)


def test_every_public_name_is_listed_and_typed() -> None:
    assert dir(wsol) == sorted(wsol.__all__)
    for name in wsol.__all__:
        assert getattr(wsol, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        wsol.trian  # noqa: B018


def test_importing_is_quick() -> None:
    """No torch, no NumPy: what takes long waits until it is used."""
    code = "import wsol, sys; dir(wsol); sys.exit(bool({'torch', 'numpy', 'cv2', 'PIL'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_results_show_themselves_in_a_notebook(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    run = wsol.Run("runs/demo")
    scores = run.scores
    both = wsol.compare(["runs/demo", "runs/other"])
    found = wsol.localize(run, "bird.jpg", device="cpu")
    for shown in (run, scores, scores["gpca"], both, wsol.analyze(run), found, run.config):
        html = shown._repr_html_()
        assert html.startswith("<"), type(shown)
    pictures = wsol.visualize(run, num=2, out="two", overwrite=True)
    for picture in (pictures, wsol.load(run, device="cpu")("bird.jpg")):
        assert picture._repr_png_().startswith(b"\x89PNG")


def test_functions_raise_and_never_print(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from wsol.errors import ConfigError, RunFolderError, WsolError

    monkeypatch.chdir(place)
    with pytest.raises(RunFolderError, match="nowhere: not a run folder"):
        wsol.evaluate("nowhere")
    with pytest.raises(ConfigError, match="unknown protocol 'gcpa'; did you mean 'gpca'"):
        wsol.evaluate("runs/demo", "gcpa")
    with pytest.raises(ConfigError, match=r"train\.epoch=3.*unknown key 'train\.epoch'"):
        wsol.train({}, set={"train.epoch": 3})
    with pytest.raises(ConfigError, match="does not know the class 'Dodo'"):
        wsol.localize("runs/demo", "bird.jpg", class_name="Dodo", device="cpu")
    with pytest.raises(WsolError):
        wsol.compare()
    wsol.evaluate("runs/demo", device="cpu")
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


@pytest.mark.long
def test_the_script_of_the_readme(repository: Path, tmp_path: Path) -> None:
    """Twelve lines with no other import: paints, trains, evaluates, compares and reports."""
    text = (repository / "README.md").read_text()
    (script,) = [code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "wsol.train" in code]
    lines = [line for line in script.splitlines() if line.strip()]
    assert len(lines) <= 12
    assert [line for line in lines if line.startswith(("import", "from"))] == ["import wsol"]
    # The same script on fewer birds and fewer epochs.
    script = script.replace(
        'paint_birds("birds")', 'paint_birds("birds", species=3, train=8, test=4, size=64)'
    )
    script = re.sub(r'"train\.epochs": \d+', '"train.epochs": 1', script)
    shutil.copytree(repository / "configs", tmp_path / "configs")
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").stat().st_size > 10_000
