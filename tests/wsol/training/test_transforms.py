"""HaS and CutMix against plain NumPy, in training, over processes, and over a resume."""

from __future__ import annotations

import copy
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from wsol.cli import main
from wsol.config import Config, Transform
from wsol.config_file import config_from_dict
from wsol.data.dataset import Batch
from wsol.errors import ConfigError
from wsol.models.heads.cam import CAM
from wsol.models.heads.targets import LabelPairs, Targets, cross_entropy, relabel, split_targets
from wsol.models.localizer import build_localizer
from wsol.registry import HEADS, TRANSFORMS
from wsol.runs.ranks import Ranks
from wsol.training.random_state import capture, restore
from wsol.training.train_step import TrainStep
from wsol.training.transforms.cutmix import CutMix
from wsol.training.transforms.has import HaS
from wsol.training.transforms.transform import BatchTransform, apply_transforms, make_transforms

MakeConfig = Callable[..., Config]
MEAN = (0.25, 0.5, 0.75)
IMAGES = torch.rand(5, 3, 40, 50, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([3, 1, 4, 1, 5])


class TestHaS:
    def test_against_numpy(self) -> None:
        transform = HaS(MEAN, cells=(0, 16, 7), rate=0.4)
        transform.seed(3)
        images, pairs = transform.transform(IMAGES, LABELS)
        generator = torch.Generator().manual_seed(3)
        expected = IMAGES.numpy().copy()
        for n in range(5):
            side = (0, 16, 7)[int(torch.randint(3, (), generator=generator))]
            if side:
                drawn = torch.rand(-(-40 // side), -(-50 // side), generator=generator).numpy()
                for i, j in np.ndindex(*drawn.shape):
                    if drawn[i, j] < 0.4:
                        cell = expected[n, :, i * side : (i + 1) * side, j * side : (j + 1) * side]
                        cell[...] = np.array(MEAN, dtype=np.float32)[:, None, None]
        np.testing.assert_array_equal(images.numpy(), expected)
        assert pairs == [(1.0, LABELS)]

    def test_what_is_hidden_is_zero_once_normalised(self, make_config: MakeConfig) -> None:
        localizer = build_localizer(make_config().model, classes=4)
        (transform,) = make_transforms(
            [Transform.of("has", rate=1.0)], tuple(localizer.mean.flatten().tolist())
        )
        images, _ = transform.transform(IMAGES, LABELS)
        assert not localizer.normalise(images).any()

    def test_how_often(self) -> None:
        transform = HaS((0.0, 0.0, 0.0), cells=(4,), rate=0.3)
        images, _ = transform.transform(torch.ones(50, 3, 40, 40), torch.zeros(50))
        assert (images == 0).double().mean().item() == pytest.approx(0.3, abs=0.03)

    @pytest.mark.parametrize("options", [{"cells": ()}, {"cells": (-1,)}, {"rate": 1.5}])
    def test_refuses(self, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="must be"):
            HaS(MEAN, **options)


class TestCutMix:
    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize("alpha", [1.0, 2.0])
    def test_against_numpy(self, seed: int, alpha: float) -> None:
        transform = CutMix(alpha)
        transform.seed(seed)
        images, pairs = transform.transform(IMAGES, LABELS)
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.rand((), generator=generator).item()
        if alpha == 2:  # the distribution function is 3 l^2 - 2 l^3
            drawn = next(r.real for r in np.roots([-2, 3, 0, -drawn]) if 0 <= r.real <= 1)
        share = np.sqrt(1 - drawn)
        y, x = (int(torch.randint(size, (), generator=generator)) for size in (40, 50))
        order = torch.randperm(5, generator=generator).numpy()
        rows = np.clip([y - int(40 * share) // 2, y + int(40 * share) // 2], 0, 40)
        columns = np.clip([x - int(50 * share) // 2, x + int(50 * share) // 2], 0, 50)
        expected = IMAGES.numpy().copy()
        source = IMAGES.numpy()[order]
        inside = (..., slice(*rows), slice(*columns))
        expected[inside] = source[inside]
        np.testing.assert_array_equal(images.numpy(), expected)
        kept = 1 - np.diff(rows)[0] * np.diff(columns)[0] / 2000
        assert [weight for weight, _ in pairs] == pytest.approx([kept, 1 - kept])
        assert pairs[0][1] is LABELS
        assert pairs[1][1].tolist() == LABELS[order].tolist()

    @pytest.mark.parametrize(("alpha", "deviation"), [(0.5, 0.3536), (1, 0.2887), (1.35, 0.2600)])
    def test_the_spread_follows_alpha(self, alpha: float, deviation: float) -> None:
        transform = CutMix(alpha)
        drawn = np.array([transform._drawn() for _ in range(4000)])
        assert drawn.mean() == pytest.approx(0.5, abs=0.02)
        assert drawn.std() == pytest.approx(deviation, abs=0.01)

    def test_some_batches_stay_as_they_are(self) -> None:
        transform = CutMix(rate=0.3)
        transform.seed(1)
        mixed = 0
        for _ in range(400):
            images, pairs = transform.transform(IMAGES[:2], LABELS[:2])
            if len(pairs) == 1:
                assert plain(pairs) == [(1.0, LABELS[:2].tolist())]
                assert torch.equal(images, IMAGES[:2])
            mixed += len(pairs) - 1
        assert mixed / 400 == pytest.approx(0.3, abs=0.06)

    @pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": float("nan")}, {"rate": -0.1}])
    def test_refuses(self, options: dict[str, float]) -> None:
        with pytest.raises(ValueError, match="must be"):
            CutMix(**options)

    def test_the_input_is_left_as_it_was(self) -> None:
        before = IMAGES.clone()
        CutMix().transform(IMAGES, LABELS)
        assert torch.equal(IMAGES, before)


class TestTargets:
    logits = torch.randn(5, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def test_mixed_cross_entropy(self) -> None:
        other = LABELS.flip(0)
        logs = self.logits.numpy() - np.log(np.exp(self.logits.numpy()).sum(1, keepdims=True))
        expected = [-np.mean([logs[n, y] for n, y in enumerate(labels)]) for labels in (LABELS, other)]
        assert cross_entropy(self.logits, LABELS).item() == pytest.approx(expected[0])
        mixed = cross_entropy(self.logits, [(0.3, LABELS), (0.7, other)])
        assert mixed.item() == pytest.approx(0.3 * expected[0] + 0.7 * expected[1])

    def test_parts_and_tables(self) -> None:
        pairs: LabelPairs = [(0.3, LABELS), (0.7, LABELS.flip(0))]
        parts = split_targets(LABELS, 2)
        assert [part.tolist() for part in parts if isinstance(part, Tensor)] == [[3, 1], [4, 1], [5]]
        assert plain(split_targets(pairs, 2)[0]) == [(0.3, [3, 1]), (0.7, [5, 1])]
        tens = relabel(pairs, torch.arange(6) * 10)
        assert plain(tens) == [(0.3, [30, 10, 40, 10, 50]), (0.7, [50, 10, 40, 10, 30])]


def plain(targets: Targets) -> list[tuple[float, list[int]]]:
    return [(weight, labels.tolist()) for weight, labels in targets]


def test_chained_transforms_keep_the_mixture() -> None:
    transforms = make_transforms([Transform.of("cutmix"), Transform.of("has", rate=0.0)], MEAN)
    images, targets = apply_transforms(transforms, (IMAGES * 255).to(torch.uint8), LABELS)
    assert images.dtype == torch.float32
    assert isinstance(targets, list)
    assert len(targets) == 2
    untouched, labels = apply_transforms((), IMAGES, LABELS)
    assert untouched is IMAGES
    assert labels is LABELS


def make_step(config: Config, ranks: Ranks, seed: int = 0) -> TrainStep:
    torch.manual_seed(seed)
    localizer = build_localizer(config.model, classes=4)
    localizer.seed(0)
    step = TrainStep(localizer, config.train, ranks)
    step.model.train()
    return step


def make_batch(size: int = 8) -> Batch:
    generator = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (size, 3, 64, 64), dtype=torch.uint8, generator=generator)
    return Batch(images, torch.arange(size) % 4, torch.arange(size), torch.zeros(size, dtype=torch.bool))


def take(step: TrainStep, times: int) -> list[dict[str, float]]:
    figures = []
    for _ in range(times):
        step.set_rate(0.01)
        figures.append(step.backward(make_batch()))
        step.gradient_norm()
        step.update()
    return figures


@pytest.mark.parametrize("name", ["has", "cutmix"])
class TestInTraining:
    def test_parts_of_a_batch_see_one_transform(
        self, make_config: MakeConfig, alone: Ranks, name: str
    ) -> None:
        found = []
        for parts in (1, 4):
            step = make_step(make_config(train__accumulate=parts, train__transforms=[name]), alone)
            step.model.eval()  # batch norm sees parts, so its statistics are held still
            figures = step.backward(make_batch())
            gradients = {n: p.grad for n, p in step.model.named_parameters()}
            found.append((figures, gradients))
        (whole, expected), (in_parts, actual) = found
        assert in_parts == pytest.approx(whole, rel=1e-5)
        for key, gradient in expected.items():
            torch.testing.assert_close(actual[key], gradient, rtol=1e-4, atol=1e-6)

    def test_processes_draw_alike(self, make_config: MakeConfig, name: str) -> None:
        """Only the seed of the config counts, not what a process has drawn elsewhere."""
        states = []
        for rank in (0, 1):
            step = make_step(make_config(train__transforms=[name]), Ranks(0, 1, torch.device("cpu")), rank)
            take(step, 1)
            states.append(dict(step.random_modules())["transforms.0"].rng_state())
        assert torch.equal(*states)

    def test_a_resumed_run_draws_what_an_unbroken_one_would(
        self, make_config: MakeConfig, alone: Ranks, name: str
    ) -> None:
        config = make_config(train__transforms=[name], model__drop="adl")
        unbroken = make_step(config, alone)
        take(unbroken, 2)
        state, random = copy.deepcopy(unbroken.state()), capture(unbroken)
        then = take(unbroken, 3)
        resumed = make_step(config, alone, seed=9)
        resumed.model.load_state_dict(state["model"])
        resumed.load_optimizer(state)
        restore(random, resumed)
        assert take(resumed, 3) == then
        for a, b in zip(unbroken.model.parameters(), resumed.model.parameters(), strict=True):
            assert torch.equal(a, b)


def test_labels_do_not_reach_the_head_in_a_mixed_step(
    make_config: MakeConfig, alone: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Tensor | None] = []
    forward = CAM.forward

    def spy(self: CAM, features: Any, labels: Tensor | None, tail: Any) -> Any:
        seen.append(labels)
        return forward(self, features, labels, tail)

    monkeypatch.setattr(CAM, "forward", spy)
    take(make_step(make_config(train__transforms=["cutmix"]), alone), 1)
    take(make_step(make_config(train__transforms=["has"]), alone), 1)
    assert seen[0] is None
    assert seen[1] is not None


class NeedsLabels(CAM):
    needs_labels: ClassVar[bool] = True


def test_a_mixing_transform_and_a_head_that_needs_labels_are_refused_when_the_config_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HEADS, "_entries", dict(HEADS.entries()))
    HEADS.register("needy", "a head that needs labels")(NeedsLabels)
    values: dict[str, Any] = {"model": {"head": "needy"}, "train": {"transforms": ["has", "cutmix"]}}
    with pytest.raises(ConfigError, match=r"train\.transforms\.1: cutmix mixes the labels .* head needy"):
        config_from_dict(values)
    values["train"]["transforms"] = ["has"]
    config_from_dict(values)


@pytest.mark.parametrize(
    ("transforms", "message"),
    [
        (["hass"], "unknown transform 'hass'; did you mean 'has'"),
        ([{"name": "has", "cell": [3]}], r"train\.transforms\.0\.cell: .* did you mean 'cells'"),
        ([{"name": "has", "rate": 2.0}], r"train\.transforms\.0\.name: has: rate must be from 0 to 1"),
        (["cutmix", "cutmix"], "cutmix and cutmix both mix labels"),
        ("cutmix", "expected a list, got 'cutmix'"),
    ],
)
def test_a_config_that_is_refused(transforms: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config_from_dict({"train": {"transforms": transforms}})


def test_a_transform_without_its_method_is_refused() -> None:
    class Empty(BatchTransform):
        pass

    with pytest.raises(ValueError, match="transform 'empty' lacks the method transform"):
        TRANSFORMS.register("empty", "does nothing")(Empty)


def test_a_run_with_transforms_resumes_bit_for_bit(birds: Path, tmp_path: Path) -> None:
    """Trained in one go, and stopped after the first epoch: the second epoch has the same figures."""
    (tmp_path / "config.yaml").write_text(
        f"""
        data: {{root: {birds}, image_size: 64, resize: 72, workers: 0}}
        model: {{backbone: tiny, weights: none, drop: adl, head: {{name: cam, channels: 8}}}}
        train: {{batch_size: 8, lr: 0.02, device: cpu, transforms: [{{name: has, cells: [0, 16]}}, cutmix]}}
        """
    )

    def losses(run: str, *epochs: str) -> list[str]:
        for i, number in enumerate(epochs):
            command = ["train", str(tmp_path / "config.yaml"), "--run-dir", str(tmp_path / run)]
            command += ["--set", f"train.epochs={number}", *(["--resume"] if i else [])]
            assert main(command) == 0
        with (tmp_path / run / "metrics.csv").open() as file:
            return [row["loss"] for row in csv.DictReader(file)]

    assert losses("whole", "2") == losses("broken", "1", "2")
