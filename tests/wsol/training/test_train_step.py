"""One optimizer step: groups, accumulation, clipping, precisions; against plain computations."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from wsol.config import Config
from wsol.data.dataset import Batch
from wsol.errors import ConfigError
from wsol.models.heads.cam import CAM
from wsol.models.heads.targets import Targets
from wsol.models.localizer import build_localizer
from wsol.records import LocalizerOutput
from wsol.runs.ranks import Ranks
from wsol.training.optimizer import make_optimizer
from wsol.training.train_step import TrainStep

MakeConfig = Callable[..., Config]


def make_learner(config: Config, ranks: Ranks) -> TrainStep:
    torch.manual_seed(0)
    localizer = build_localizer(config.model, classes=4)
    localizer.seed(0)
    learner = TrainStep(localizer, config.train, ranks)
    learner.model.train()
    return learner


def make_batch(size: int = 8) -> Batch:
    generator = torch.Generator().manual_seed(1)
    return Batch(
        torch.randint(0, 256, (size, 3, 64, 64), dtype=torch.uint8, generator=generator),
        torch.arange(size) % 4,
        torch.arange(size),
        torch.zeros(size, dtype=torch.bool),
    )


def gradients(learner: TrainStep) -> dict[str, torch.Tensor]:
    return {n: p.grad.clone() for n, p in learner.model.named_parameters() if p.grad is not None}


def test_groups_have_their_own_rates_and_theta_no_decay(make_config: MakeConfig, alone: Ranks) -> None:
    config = make_config(
        model__attention="gpca", train__rates={"new": 10, "new_bias": 20}, train__weight_decay=0.1
    )
    localizer = build_localizer(config.model, classes=4)
    optimizer = make_optimizer(localizer, config.train)
    names = {p: n for n, p in localizer.named_parameters()}
    seen: dict[str, dict[str, Any]] = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            assert names[parameter] not in seen
            seen[names[parameter]] = group
    assert set(seen) == set(names.values())
    theta = [n for n in seen if "attention" in n]
    assert theta
    for name, group in seen.items():
        assert group["multiplier"] == (20 if name.endswith(".bias") else 10)  # nothing is pretrained here
        assert group["lr"] == pytest.approx(0.02 * group["multiplier"])
        assert group["weight_decay"] == (0 if name in theta else 0.1)


def test_an_update_is_sgd_with_momentum_and_decay(make_config: MakeConfig, alone: Ranks) -> None:
    config = make_config(
        train__optimizer={"name": "sgd", "momentum": 0.9, "nesterov": True},
        train__weight_decay=0.01,
        train__rates={"new": 3},
    )
    learner = make_learner(config, alone)
    name, parameter = next((n, p) for n, p in learner.model.named_parameters() if p.ndim == 4)
    velocity = np.zeros(parameter.shape)
    for rate in (0.05, 0.01):
        learner.set_rate(rate)
        learner.backward(make_batch())
        learner.gradient_norm()
        before = parameter.detach().double().numpy().copy()
        gradient = parameter.grad.double().numpy() + 0.01 * before  # type: ignore[union-attr]
        learner.update()
        velocity = 0.9 * velocity + gradient
        expected = before - 3 * rate * (gradient + 0.9 * velocity)
        np.testing.assert_allclose(parameter.detach().numpy(), expected, rtol=1e-5, atol=1e-7, err_msg=name)


def test_a_loss_can_begin_late(
    make_config: MakeConfig, alone: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = CAM.loss

    def ramped(self: CAM, output: LocalizerOutput, targets: Targets) -> dict[str, torch.Tensor]:
        ramp = min(max(self.epoch - 1, 0.0), 1.0)
        return {name: ramp * term for name, term in loss(self, output, targets).items()}

    monkeypatch.setattr(CAM, "loss", ramped)
    learner = make_learner(make_config(), alone)
    learner.model.eval()
    losses = [learner.backward(make_batch())["loss"]]
    for epoch in (0.5, 1.5, 3.0):
        learner.set_epoch(epoch)
        losses.append(learner.backward(make_batch())["loss"])
    assert losses == pytest.approx([losses[0], 0, losses[0] / 2, losses[0]])


def test_a_batch_in_parts_has_the_gradient_of_the_whole(make_config: MakeConfig, alone: Ranks) -> None:
    found = []
    for parts in (1, 4):
        learner = make_learner(make_config(train__accumulate=parts), alone)
        learner.model.eval()  # batch norm sees parts, so its statistics are held still
        figures = learner.backward(make_batch())
        found.append((figures, gradients(learner)))
    (whole, expected), (parts_, actual) = found
    assert parts_ == pytest.approx(whole)
    for name, gradient in expected.items():
        torch.testing.assert_close(actual[name], gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("batch", "accumulate", "world"), [(12, 4, 2), (8, 8, 2), (12, 6, 4)])
def test_a_batch_that_does_not_split_evenly_is_refused(
    make_config: MakeConfig, batch: int, accumulate: int, world: int
) -> None:
    """With fewer parts than `accumulate`, ranks would wait for the last one to exchange gradients: never."""
    config = make_config(train__batch_size=batch, train__accumulate=accumulate)
    with pytest.raises(ConfigError, match=f"split evenly over {world} processes"):
        make_learner(config, Ranks(0, world, torch.device("cpu")))


def test_figures_are_sums_over_the_images(make_config: MakeConfig, alone: Ranks) -> None:
    learner = make_learner(make_config(model__attention="se"), alone)
    learner.model.eval()
    batch = make_batch()
    figures = learner.backward(batch)
    with torch.no_grad():
        output = learner.model(batch.images)
        log_probabilities = output.logits.double().log_softmax(1)
    assert figures["images"] == 8
    assert figures["loss"] == pytest.approx(-log_probabilities[range(8), batch.labels].sum().item(), rel=1e-5)
    assert figures["accuracy"] == (output.logits.argmax(1) == batch.labels).sum().item()
    (mask,) = learner.model.masks()
    assert figures["mask_std"] == pytest.approx(8 * np.std(mask.numpy(), axis=1, ddof=1).mean(), rel=1e-5)


def test_the_gradient_is_clipped_to_its_norm(make_config: MakeConfig, alone: Ranks) -> None:
    free, bound = (make_learner(make_config(train__clip_norm=c), alone) for c in (None, 1e-3))
    for learner in (free, bound):
        learner.backward(make_batch())
    norm = math.sqrt(sum(g.double().square().sum().item() for g in gradients(free).values()))
    assert free.gradient_norm() == pytest.approx(norm, rel=1e-5)
    assert bound.gradient_norm() == pytest.approx(norm, rel=1e-5)
    clipped = math.sqrt(sum(g.double().square().sum().item() for g in gradients(bound).values()))
    assert clipped == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_half_precision_steps_like_single(make_config: MakeConfig, alone: Ranks, amp: str) -> None:
    single, half = (
        make_learner(make_config(train__amp=a, model__attention="gpca"), alone) for a in ("none", amp)
    )
    for learner in (single, half):
        for _ in range(2):
            learner.set_rate(0.01)
            learner.backward(make_batch())
            learner.gradient_norm()
            learner.update()
    for (name, a), b in zip(single.model.named_parameters(), half.model.parameters(), strict=True):
        assert b.dtype == torch.float32
        torch.testing.assert_close(b, a, rtol=0.1, atol=2e-2, msg=name)
    assert bool(half.state()["scaler"]) == (amp == "fp16")


def test_fp16_that_overflows_skips_the_step_and_halves_its_scale(
    make_config: MakeConfig, alone: Ranks
) -> None:
    learner = make_learner(make_config(train__amp="fp16"), alone)
    learner.backward(make_batch())
    before = {n: p.detach().clone() for n, p in learner.model.named_parameters()}
    scale = learner.state()["scaler"]["scale"]
    for parameter in learner.model.parameters():
        parameter.grad.fill_(float("inf"))  # type: ignore[union-attr]
    assert math.isinf(learner.gradient_norm())
    assert learner.skips_overflow
    learner.update()
    assert all(torch.equal(p, before[n]) for n, p in learner.model.named_parameters())
    assert learner.state()["scaler"]["scale"] == scale / 2
    for _ in range(30):
        learner.gradient_norm()
        learner.update()
    assert not learner.skips_overflow, "no scale helps"


def test_channels_last_only_changes_the_layout(make_config: MakeConfig, alone: Ranks) -> None:
    plain, last = (make_learner(make_config(train__channels_last=c), alone) for c in (False, True))
    assert next(p for p in last.model.parameters() if p.ndim == 4 and p.shape[1] > 3).is_contiguous(
        memory_format=torch.channels_last
    )
    for learner in (plain, last):
        learner.model.double()  # in float32 the order of a convolution's sums shows
        learner.backward(make_batch())
    for name, gradient in gradients(plain).items():
        torch.testing.assert_close(gradients(last)[name], gradient, rtol=1e-8, atol=1e-10, msg=name)


@pytest.mark.long
def test_compiled_steps_are_the_same_steps(
    make_config: MakeConfig, alone: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The graph is captured and differentiated as always; only the minute in the C++ compiler is left out.
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    plain, compiled = (
        make_learner(make_config(train__compile=c, model__drop="adl"), alone) for c in (False, True)
    )
    for learner in (plain, compiled):
        learner.backward(make_batch())
    for name, gradient in gradients(plain).items():
        torch.testing.assert_close(gradients(compiled)[name], gradient, rtol=1e-3, atol=1e-5, msg=name)
    assert set(compiled.state()["model"]) == set(plain.state()["model"])


def test_synchronized_batch_norm_is_for_gpus(make_config: MakeConfig, alone: Ranks) -> None:
    with pytest.raises(ConfigError, match="sync_bn"):
        make_learner(make_config(train__sync_bn=True), alone)
