"""Training steps on the CPU: what memory layout, bf16 and frozen stages gain. `compile` has torch.compile.

Every variant is the step that `wsol train` takes (forward, backward, norm of the gradient, update), as a
ratio to the plain one of the same network. The cores' time is taken, not the clock's: other work may run.
Only what configs/cub40 use has a bound.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from time import process_time

import torch

from scripts.benchmarks.timing import Ratio, readable, time_side_by_side
from wsol import config
from wsol.data.dataset import Batch
from wsol.freed_memory import freed_memory_kept
from wsol.models.localizer import build_localizer
from wsol.runs.ranks import Ranks
from wsol.training.precision import computes_in_bf16
from wsol.training.train_step import TrainStep

Variant = tuple[str, ...]  # what is switched on, by the names in `train`; bf16 is `amp: bf16`

# network: the stage up to which the frozen variants hold it still, side of the images, images in a step
NETWORKS = {
    "tiny": ("stem", 128, 16),
    "mobilenet_v1": ("blocks1", 128, 8),
    "resnet50": ("layer1", 128, 4),
    "vgg16": ("pool2", 128, 2),
}
VARIANTS: tuple[Variant, ...] = (
    ("channels_last",),
    ("freeze",),
    ("bf16",),
    ("channels_last", "freeze"),
    ("channels_last", "bf16"),
    ("channels_last", "freeze", "bf16"),
)
BOUNDS: dict[tuple[str, Variant], float] = {
    ("mobilenet_v1", ("channels_last", "freeze")): 0.95,
    ("mobilenet_v1", ("channels_last", "freeze", "bf16")): 0.75,
}


def run() -> list[Ratio]:
    # Where bf16 is not faster, nobody would take it; without instructions a step takes twenty times as long.
    bf16 = computes_in_bf16(torch.device("cpu"))
    measured = [v for v in VARIANTS if "bf16" not in v or bf16]
    return [ratio for network in NETWORKS for ratio in compare(network, measured)]


def compare(network: str, variants: Sequence[Variant]) -> list[Ratio]:
    steps = {variant: make_step(network, variant) for variant in ((), *variants)}
    with freed_memory_kept():  # as the training loop does
        times = time_side_by_side(steps, rounds=5, seconds=0, clock=process_time)
    return [
        Ratio(
            f"{network}: step with {' + '.join(variant)} / plain",
            times[variant] / times[()],
            BOUNDS.get((network, variant), math.inf),
            "at most",
            f"{readable(times[variant])} against {readable(times[()])}",
        )
        for variant in variants
    ]


def make_step(network: str, variant: Variant) -> Callable[[], None]:
    stage, side, size = NETWORKS[network]
    model = config.Model(config.Backbone(network), "none", head=config.Head.of("cam", channels=256))
    train = config.Train(
        optimizer=config.Optimizer.of("sgd", nesterov=True),
        clip_norm=5.0,
        amp="bf16" if "bf16" in variant else "none",
        channels_last="channels_last" in variant,
        compile="compile" in variant,
        freeze=stage if "freeze" in variant else None,
    )
    torch.manual_seed(0)
    train_step = TrainStep(build_localizer(model, classes=40), train, Ranks.alone())
    train_step.model.train()
    images = torch.randint(0, 256, (size, 3, side, side), dtype=torch.uint8)
    batch = Batch(images, torch.arange(size), torch.arange(size), torch.zeros(size, dtype=torch.bool))
    return partial(take, train_step, batch)


def take(train_step: TrainStep, batch: Batch) -> None:
    train_step.backward(batch)
    train_step.gradient_norm()
    train_step.update()
