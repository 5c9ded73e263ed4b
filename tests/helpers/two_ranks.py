"""What two ranks must do as one: a script for torchrun, with a folder of birds as its argument.

It prints a line for each check that held, and ends with an error at the first that did not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.configs import tiny_config
from wsol.config import Config, Train
from wsol.data.dataset import Batch, EpochSampler, make_train_loader
from wsol.data.index import open_dataset
from wsol.errors import ConfigError, RunFolderError
from wsol.models.localizer import Localizer, build_localizer
from wsol.records import Sample
from wsol.runs.ranks import Ranks
from wsol.training.provenance import require_same_config
from wsol.training.train_step import TrainStep
from wsol.training.validation import Validator


def check_words(ranks: Ranks) -> None:
    """What the ranks say to each other arrives, errors of the main rank too."""

    def refuse() -> None:
        raise RunFolderError(f"refused by rank {ranks.rank}")

    assert ranks.gather(10 + ranks.rank) == [10, 11]
    assert ranks.on_main(lambda: ranks.rank) == 0
    with pytest.raises(RunFolderError, match=r"^refused by rank 0$"):
        ranks.on_main(refuse)


def check_configs(ranks: Ranks, root: Path) -> None:
    """Different configs are refused on every rank, and the difference is named."""
    require_same_config(tiny_config(root), ranks)
    other = tiny_config(root, train__lr=0.5, data__workers=1) if ranks.rank == 1 else tiny_config(root)
    named = "data.workers is 0 on rank 0, 1 on rank 1; train.lr is 0.02 on rank 0, 0.5 on rank 1"
    with pytest.raises(ConfigError, match=named):
        require_same_config(other, ranks)


def make_localizer(config: Config) -> Localizer:
    torch.manual_seed(0)
    return build_localizer(config.model, classes=4).train()


def batches(samples: Sequence[Sample], ranks: Ranks, number: int) -> list[Batch]:
    sampler = EpochSampler(len(samples), 8, seed=0, rank=ranks.rank, world=ranks.world)
    return list(make_train_loader(samples, sampler, resize=72, side=64, seed=0))[:number]


def without_batch_norm(module: nn.Module) -> nn.Module:
    for name, child in module.named_children():
        norm = isinstance(child, nn.BatchNorm2d)
        setattr(module, name, nn.Identity() if norm else without_batch_norm(child))
    return module


def three_steps(
    config: Config, ranks: Ranks, freeze: str | None = None
) -> tuple[dict[str, Tensor], list[dict[str, float]]]:
    """In double precision, in which rounding neither hides a difference nor makes one."""
    localizer = make_localizer(config)
    without_batch_norm(localizer).double()
    train = Train(lr=0.05, weight_decay=0.01, accumulate=2, freeze=freeze)
    train_step = TrainStep(localizer, train, ranks)
    figures = []
    for batch in batches(open_dataset(config.data).split("train"), ranks, 3):
        train_step.set_rate(0.05)
        figures.append(ranks.sum(train_step.backward(batch)))
        figures[-1]["norm"] = train_step.gradient_norm()
        train_step.update()
    return {n: p.detach().clone() for n, p in localizer.named_parameters()}, figures


def check_buffers(config: Config, ranks: Ranks) -> None:
    """Batch norm sees another half of the batch on each rank; validation uses what a checkpoint holds."""
    localizer = make_localizer(config)
    train_step = TrainStep(localizer, config.train, ranks)
    samples = open_dataset(config.data).split("train")
    for batch in batches(samples, ranks, 2):
        train_step.backward(batch)

    def buffers() -> tuple[list[bool], list[Tensor]]:
        everyone = ranks.gather([b.clone() for b in localizer.buffers()])
        return [torch.equal(a, b) for a, b in zip(*everyone, strict=True)], everyone[0]

    same, before = buffers()
    assert not all(same), "the ranks must differ before, or nothing is shown"
    Validator(samples[:9], config, ranks).figures(localizer)
    same, after = buffers()
    assert all(same)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True)), "those of the main rank"


def measured_theta(config: Config, ranks: Ranks) -> Tensor:
    """The theta that GPCA measures on the first batch."""
    localizer = make_localizer(config)
    without_batch_norm(localizer).double()
    train_step = TrainStep(localizer, config.train, ranks)
    train_step.backward(batches(open_dataset(config.data).split("train"), ranks, 1)[0])
    return dict(localizer.named_parameters())["head.attention.raw_theta"].detach().clone()


def main(root: Path) -> None:
    config = tiny_config(root, data__val_share=0.0)
    ranks = Ranks.join("cpu")
    assert ranks.world == 2
    check_words(ranks)
    check_configs(ranks, root)
    check_buffers(config, ranks)
    together = {freeze: three_steps(config, ranks, freeze) for freeze in (None, "stage1")}
    auto = tiny_config(root, data__val_share=0.0, model__attention={"name": "gpca", "reading": "auto"})
    theta = measured_theta(auto, ranks)
    assert all(torch.equal(theta, other) for other in ranks.gather(theta))
    ranks.leave()
    if ranks.is_main:
        torch.testing.assert_close(theta, measured_theta(auto, Ranks.alone()), rtol=1e-9, atol=1e-12)
        for freeze, (weights, figures) in together.items():
            expected, expected_figures = three_steps(config, Ranks.alone(), freeze)
            for name, value in expected.items():
                torch.testing.assert_close(weights[name], value, rtol=1e-9, atol=1e-12)
            for a, b in zip(figures, expected_figures, strict=True):
                for name in b:
                    assert abs(a[name] - b[name]) <= 1e-9 * abs(b[name]) + 1e-12, (name, a, b)
        print("two ranks are as one")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
