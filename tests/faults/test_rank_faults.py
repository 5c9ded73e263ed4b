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
from wsol.run import load_run
from wsol.runs.checkpoint import load_checkpoint
from wsol.runs.folder import RunFolder
from wsol.runs.history import TIME_COLUMNS, read_csv
from wsol.runs.ranks import Ranks
from wsol.training.validation import Validator

pytestmark = [pytest.mark.slow]

# A model without batch norm and drop blocks takes three steps on two ranks, then alone with the same batches.
# In double precision, in which rounding cannot hide or feign a difference.
SAME_STEPS = """
import sys, torch
from torch import nn
from wsol.config import Data, Drop, Head, Model, Backbone, Train
from wsol.data.dataset import EpochSampler, make_train_loader
from wsol.data.index import open_dataset
from wsol.errors import RunFolderError
from wsol.models.localizer import build_localizer
from wsol.runs.ranks import Ranks
from wsol.training.train_step import TrainStep

def without_batch_norm(module):
    for name, child in module.named_children():
        norm = isinstance(child, nn.BatchNorm2d)
        setattr(module, name, nn.Identity() if norm else without_batch_norm(child))
    return module

def three_steps(ranks):
    samples = open_dataset(Data(root=sys.argv[1])).split("train")
    torch.manual_seed(0)
    localizer = build_localizer(Model(Backbone("tiny"), "none", head=Head.of("cam", channels=8)), classes=4)
    train = Train(lr=0.05, weight_decay=0.01, accumulate=int(sys.argv[2]))
    learner = TrainStep(without_batch_norm(localizer).double().train(), train, ranks)
    sampler = EpochSampler(len(samples), 8, seed=0, rank=ranks.rank, world=ranks.world)
    figures = []
    for batch in list(make_train_loader(samples, sampler, resize=72, side=64, seed=0))[:3]:
        learner.set_rate(0.05)
        figures.append(ranks.sum(learner.backward(batch)))
        figures[-1]["norm"] = learner.gradient_norm()
        learner.update()
    return {n: p.detach().clone() for n, p in localizer.named_parameters()}, figures

def refuse():
    raise RunFolderError(f"refused by rank {ranks.rank}")

ranks = Ranks.join("cpu")
assert ranks.world == 2
assert ranks.gather(10 + ranks.rank) == [10, 11]
assert ranks.on_main(lambda: ranks.rank) == 0
try:
    ranks.on_main(refuse)
    raise SystemExit("an error of the main rank is everyone's")
except RunFolderError as error:
    assert str(error) == "refused by rank 0"
weights, figures = three_steps(ranks)
ranks.leave()
if ranks.is_main:
    expected, expected_figures = three_steps(Ranks.alone())
    for name, value in expected.items():
        torch.testing.assert_close(weights[name], value, rtol=1e-9, atol=1e-12, msg=name)
    for a, b in zip(figures, expected_figures):
        for name in b:
            assert abs(a[name] - b[name]) <= 1e-9 * abs(b[name]) + 1e-12, (name, a, b)
    print("the same steps")
"""


# Batch norm sees another half of the batch on each rank. What is validated is what the checkpoint holds.
SAME_BUFFERS = """
import sys, torch
from wsol.config import Backbone, Config, Data, Head, Model, Train
from wsol.data.dataset import EpochSampler, make_train_loader
from wsol.data.index import open_dataset
from wsol.models.localizer import build_localizer
from wsol.runs.ranks import Ranks
from wsol.training.train_step import TrainStep
from wsol.training.validation import Validator

ranks = Ranks.join("cpu")
data = Data(root=sys.argv[1], image_size=64, resize=72, workers=0)
samples = open_dataset(data).split("train")
torch.manual_seed(0)
localizer = build_localizer(Model(Backbone("tiny"), "none", head=Head.of("cam", channels=8)), classes=4)
train = Train(batch_size=8)
learner = TrainStep(localizer.train(), train, ranks)
sampler = EpochSampler(len(samples), 8, seed=0, rank=ranks.rank, world=ranks.world)
for batch in list(make_train_loader(samples, sampler, resize=72, side=64, seed=0))[:2]:
    learner.backward(batch)

def buffers():
    everyone = ranks.gather([b.clone() for b in localizer.buffers()])
    return [torch.equal(a, b) for a, b in zip(*everyone)], everyone[0]

same, main = buffers()
assert not all(same), "the ranks must differ before, or nothing is shown"
Validator(samples[:9], Config(data=data, train=train), ranks).figures(localizer)
same, after = buffers()
assert all(same)
assert all(torch.equal(a, b) for a, b in zip(main, after)), "those of the main rank"
ranks.leave()
if ranks.is_main:
    print("the same buffers")
"""


def test_two_ranks_take_the_same_steps_as_one(birds: Path, tmp_path: Path) -> None:
    script = tmp_path / "steps.py"
    script.write_text(SAME_STEPS)
    process = torchrun(script, birds, 2)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "the same steps" in output


def test_ranks_validate_what_the_checkpoint_holds(birds: Path, tmp_path: Path) -> None:
    script = tmp_path / "buffers.py"
    script.write_text(SAME_BUFFERS)
    process = torchrun(script, birds)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "the same buffers" in output


OTHER_CONFIG = """
import os, sys
from wsol.cli import main

changes = ["--set", "train.lr=0.5", "--set", "data.workers=1"] if os.environ["RANK"] == "1" else []
sys.exit(main(["train", sys.argv[1], "--run-dir", sys.argv[2], *changes]))
"""


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
    loaded = load_run(whole.path, device="cpu")
    validator = Validator(open_dataset(config.data).split("val"), config, Ranks.alone())
    assert len(validator.samples) % 6, "the last batch must be incomplete to show anything"
    figures = validator.figures(loaded.localizer)
    assert figures == {name: logs[0][-1][name] for name in figures}
