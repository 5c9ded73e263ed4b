"""The demo's commands, in order and for real, on fewer birds and one epoch."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from PIL import Image

from wsol.cli import build_parser, main
from wsol.commands import demo_steps as demo
from wsol.data.synthetic.paint import make_dataset
from wsol.runs.folder import RunFolder
from wsol.shipped_configs import shipped_configs

SMALL = """
data: {name: cub, image_size: 64, resize: 72, val_share: 0.2, workers: 0}
model: {backbone: tiny, weights: none, drop: adl, attention: gpca, head: {name: cam, channels: 16}}
train: {epochs: 1, batch_size: 8}
"""


@pytest.mark.parametrize("fast", [False, True])
def test_every_step_is_a_command_that_parses(tmp_path: Path, fast: bool) -> None:
    birds, first, run = (tmp_path / name for name in ("birds", "first", "run"))
    commands = demo.steps(birds, tmp_path / "birds.png", first, run, fast)
    assert [command[0] for command in commands].count("data") == 3
    for command in commands:
        assert build_parser().parse_args(command).run.__module__.startswith(f"wsol.commands.{command[0]}")
    stages = [command for command in commands if command[0] in ("train", "refine")]
    assert len(stages) == (1 if fast else 2)
    assert f"--run-dir {run}" in " ".join(stages[-1])  # the last stage is what is measured and drawn
    assert commands[-1][:2] == ["report", str(run)]


def test_the_config_of_the_demo_comes_with_the_package() -> None:
    assert {demo.CONFIG, demo.SECOND} <= set(shipped_configs())


def test_the_whole_story(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "small.yaml"
    config.write_text(SMALL)
    monkeypatch.setattr(demo, "CONFIG", str(config))
    second = tmp_path / "second.yaml"
    second.write_text(
        "model: {backbone: tiny, weights: none, head: foreground}\ntrain: {epochs: 1, batch_size: 8}"
    )
    monkeypatch.setattr(demo, "SECOND", str(second))
    out = tmp_path / "demo"
    make_dataset(out / "birds", species=4, train=6, test=3, size=96, seed=1, progress=False)

    assert main(["demo", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    folder = RunFolder(out / "run")
    for path in (
        out / "birds.png",
        RunFolder(out / "first").curves,
        folder.overlays / "grid.png",
        folder.report,
        out / "bird.jpg",
    ):
        assert path.stat().st_size > 1000
        assert str(path) in printed
    for command in ("data check", "data info", "train", "refine", "evaluate", "visualize", "report"):
        assert f"$ wsol {command} " in printed
    assert json.loads((out / "run" / "scores.json").read_text())

    # The first lines of Python in the README work where the demo was run.
    readme = (repository / "README.md").read_text()
    script = next(iter(re.findall(r"```python\n(.*?)```", readme, re.DOTALL)))
    monkeypatch.chdir(tmp_path)
    exec(script, {})
    assert min(Image.open("found.png").size) > 96

    assert demo.free_folder(out / "run") == out / "run-2"
