"""Several ranks under torchrun: the same step as one, one writer, and the death of one is survived."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
import torch

from tests.helpers.configs import tiny_config, write_config
from tests.helpers.processes import rank_process, torchrun
from wsol.data.index import open_dataset
from wsol.run import Run
from wsol.runs.checkpoint import load_checkpoint
from wsol.runs.folder import RunFolder
from wsol.runs.history import TIME_COLUMNS, read_csv
from wsol.runs.ranks import Ranks
from wsol.training.validation import Validator


@pytest.mark.long
def test_two_ranks_do_what_one_does(birds: Path) -> None:
    """The same steps, the same buffers in validation, one config for all: `tests/helpers/two_ranks.py`."""
    process = torchrun("-m", "tests.helpers.two_ranks", birds)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "two ranks are as one" in output


OTHER_CONFIG = """
import os, sys
from wsol.cli import main

changes = ["--set", "train.lr=0.5", "--set", "data.workers=1"] if os.environ["RANK"] == "1" else []
sys.exit(main(["train", sys.argv[1], "--run-dir", sys.argv[2], *changes]))
"""


@pytest.mark.long  # two_ranks.py checks the same without the command
def test_ranks_with_different_configs_are_refused_before_the_first_step(birds: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(OTHER_CONFIG)
    config = write_config(tmp_path / "config.yaml", tiny_config(birds))
    process = torchrun(script, config, tmp_path / "run")
    _, errors = process.communicate(timeout=120)
    assert process.returncode
    lines = [line for line in errors.splitlines() if line.startswith("wsol: error")]
    assert len(set(lines)) == 1, errors
    assert "started with different configs: data.workers is 0 on rank 0, 1 on rank 1" in lines[0]
    assert "train.lr is 0.02 on rank 0, 0.5 on rank 1" in lines[0]
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_the_death_of_one_rank_is_survived_by_a_restart(birds: Path, tmp_path: Path) -> None:
    config = tiny_config(
        birds,
        model__drop="adl",
        data__val_share=0.25,
        train__epochs=6,
        train__batch_size=6,
        train__checkpoint_every=2,
    )
    path = write_config(tmp_path / "config.yaml", config)
    whole, killed = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "killed")

    process = torchrun("-m", "wsol", "train", path, "--run-dir", whole.path)
    output, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    assert output.count("epoch 1/6") == 1, "one writer"

    process = torchrun(*("-m", "wsol", "train", path, "--run-dir", killed.path, "--resume"), restarts=1)
    while not (killed.metrics.exists() and len(read_csv(killed.metrics)) >= 2):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    victim = rank_process(process.pid, 1)
    os.kill(victim, signal.SIGKILL)
    output, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    assert "continuing after" in output
    assert len(read_csv(killed.metrics)) == 6

    # The same run, to the last bit: weights, momentum and log.
    a, b = (load_checkpoint(run.checkpoints.last) for run in (whole, killed))
    for key in a["model"]:
        assert torch.equal(a["model"][key], b["model"][key]), key
    for number, state in a["optimizer"]["state"].items():
        assert torch.equal(state["momentum_buffer"], b["optimizer"]["state"][number]["momentum_buffer"])
    logs = [
        [{k: v for k, v in row.items() if k not in TIME_COLUMNS} for row in read_csv(run.metrics)]
        for run in (whole, killed)
    ]
    assert logs[0] == logs[1]

    # Two ranks validated exactly as one does: no image twice, none left out.
    whole.checkpoints.best.unlink()
    localizer = Run(whole.path).localizer("cpu")
    validator = Validator(open_dataset(config.data).split("val"), config, Ranks.alone())
    assert len(validator.samples) % 6, "the last batch must be incomplete to show anything"
    figures = validator.figures(localizer)
    assert figures == {name: logs[0][-1][name] for name in figures}
