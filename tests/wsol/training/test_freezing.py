"""Frozen stages (`train.freeze`): they stay as they are bit for bit, and everything after them learns."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.helpers.configs import MakeConfig, tiny_config
from tests.helpers.training import assert_same_runs, train_run
from wsol.config import Config
from wsol.data.dataset import Batch
from wsol.errors import ConfigError
from wsol.models.localizer import Localizer, build_localizer
from wsol.runs.checkpoint import load_checkpoint
from wsol.runs.folder import RunFolder
from wsol.runs.ranks import Ranks
from wsol.training.train_step import TrainStep

FROZEN = "backbone.stages.stem.", "backbone.stages.stage1."


def make_step(config: Config, alone: Ranks) -> TrainStep:
    torch.manual_seed(0)
    localizer = build_localizer(config.model, classes=4)
    localizer.seed(0)
    step = TrainStep(localizer, config.train, alone)
    step.model.train()
    return step


def make_batch() -> Batch:
    images = torch.randint(0, 256, (8, 3, 64, 64), generator=torch.Generator().manual_seed(1))
    return Batch(images.to(torch.uint8), torch.arange(8) % 4, torch.arange(8), torch.zeros(8).bool())


def one_step(step: TrainStep) -> None:
    step.set_rate(0.02)
    step.set_epoch(3.0)
    step.backward(make_batch())
    step.gradient_norm()
    step.update()


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("method", ["cam", "bas"])
def test_a_run_leaves_them_bit_equal_and_resumes_bit_for_bit(
    birds: Path, tmp_path: Path, method: str
) -> None:
    config = tiny_config(birds, method, train__freeze="stage1", train__weight_decay=0.1, train__clip_norm=1.0)
    assert train_run(config, tmp_path / "whole") == 0
    for number, stop_after in enumerate((2, 2, 3)):
        train_run(config, tmp_path / "parts", resume=number > 0, stop_after=stop_after)
    assert train_run(config, tmp_path / "parts", resume=True) == 0
    assert_same_runs(tmp_path / "whole", tmp_path / "parts")

    train_run(config, tmp_path / "first", stop_after=1)
    one, end = (
        load_checkpoint(RunFolder(tmp_path / name).checkpoints.last)["model"] for name in ("first", "whole")
    )
    for name, value in end.items():
        moved = not torch.equal(value, one[name])
        assert moved == (not name.startswith((*FROZEN, "mean", "std"))), name


def test_another_stage_is_another_recipe(birds: Path, tmp_path: Path) -> None:
    train_run(tiny_config(birds, train__freeze="stem"), tmp_path, stop_after=1)
    with pytest.raises(ConfigError, match=r"train\.freeze was 'stem', is 'stage1'"):
        train_run(tiny_config(birds, train__freeze="stage1"), tmp_path, resume=True)


def test_only_what_learns_is_in_the_optimizer(make_config: MakeConfig, alone: Ranks) -> None:
    step = make_step(make_config("adl", train__freeze="stage1"), alone)
    held = {id(p) for group in step.optimizer.param_groups for p in group["params"]}
    for name, parameter in step.model.named_parameters():
        frozen = name.startswith(FROZEN)
        assert (id(parameter) in held) == parameter.requires_grad == (not frozen), name


def test_the_backward_pass_stops_there_and_taps_still_learn(make_config: MakeConfig, alone: Ranks) -> None:
    config = make_config(train__freeze="stage1", model__taps=[{"name": "se", "after": ["stem", "stage1"]}])
    step = make_step(config, alone)
    assert isinstance(step.model, Localizer)
    backbone = step.model.backbone
    images = step.model.normalise(make_batch().images)
    assert not backbone(images, reads=("stage1",))["stage1"].requires_grad
    one_step(step)
    for name, parameter in step.model.named_parameters():
        assert (parameter.grad is None) == name.startswith(FROZEN), name


def test_train_mode_never_reaches_them(make_config: MakeConfig, alone: Ranks) -> None:
    localizer = make_step(make_config(train__freeze="stage1"), alone).model
    assert isinstance(localizer, Localizer)
    for mode in (True, False, True):
        localizer.train(mode)
        localizer.backbone.shapes(64, 64)  # changes the mode and puts it back
        for name, module in localizer.named_modules():
            assert module.training == (mode and not f"{name}.".startswith(FROZEN)), name


def test_the_erased_branch_of_bas_may_begin_inside(make_config: MakeConfig, alone: Ranks) -> None:
    head = {"name": "bas", "channels": 8, "generator": "stage1"}
    step = make_step(make_config(train__freeze="stage2", model__head=head), alone)
    before = state(step.model)
    one_step(step)
    after = state(step.model)
    frozen = (*FROZEN, "backbone.stages.stage2.", "mean", "std")
    assert {name for name in before if torch.equal(before[name], after[name])} == {
        name for name in before if name.startswith(frozen)
    }


@pytest.mark.long
@pytest.mark.parametrize("method", ["adl", "bas"])
def test_compiled_steps_are_the_same_steps(
    make_config: MakeConfig, alone: Ranks, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    # The graph is captured and differentiated as always; only the minute in the C++ compiler is left out.
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    plain, compiled = (
        make_step(make_config(method, train__freeze="stage1", train__compile=c), alone) for c in (False, True)
    )
    before = state(plain.model)
    one_step(plain)
    one_step(compiled)
    after = state(compiled.model)
    for name, value in state(plain.model).items():
        torch.testing.assert_close(after[name], value, rtol=1e-3, atol=1e-5, msg=name)
        if name.startswith(FROZEN):
            assert torch.equal(after[name], before[name]), name


def test_an_unknown_stage_is_refused_before_any_image_is_read(
    birds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wsol.training.setup.check_images", lambda *_: pytest.fail("an image was read"))
    with pytest.raises(ConfigError) as error:
        train_run(tiny_config(birds, train__freeze="stag1"), tmp_path / "run")
    assert re.fullmatch(r"train\.freeze: no stage 'stag1'; did you mean 'stage1'.*", str(error.value))
    assert not (tmp_path / "run").exists()


def test_a_rate_for_a_frozen_parameter_is_refused(make_config: MakeConfig, alone: Ranks) -> None:
    config = make_config(train__freeze="stage1", train__rates={"named": {"stem.0.weight": 2}})
    with pytest.raises(ConfigError, match=r"train\.rates\.named: the model trains no .* part 'stem"):
        make_step(config, alone)
