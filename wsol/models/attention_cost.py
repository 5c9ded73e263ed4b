"""What an attention costs inside a network: parameters, multiply-adds and the time of a step."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from gpca import insert_attention
from wsol.models.networks.resnet import resnet50

BLOCK_ENDS = "layer?.?.bn3"  # the last batch norm of each of its blocks, before the addition
CLASSES = 100
SIDE = 32
REPEATS = 3  # measured steps of each kind; fewer where they take long
SECONDS = 5.0  # after so long no further step is started


@dataclass(frozen=True)
class Cost:
    """parameters, multiply_adds: what the attention adds, the latter for one image at test.

    training, inference: seconds of one step of the whole network on a batch.
    """

    parameters: int
    multiply_adds: int
    training: float
    inference: float


def small_image_resnet50() -> nn.Module:
    """ResNet50 as the paper uses it for CIFAR-100: 32x32 images, a 3x3 stem without stride and pooling."""
    return resnet50(CLASSES).network


def measure_attention(network: nn.Module, name: str, options: Mapping[str, Any], batch_size: int) -> Cost:
    """The cost of an attention after every block of a ResNet; the network is given back without it."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(batch_size, 3, SIDE, SIDE, generator=generator)
    labels = torch.randint(0, CLASSES, (batch_size,), generator=generator)
    inserted = insert_attention(network, name, after=BLOCK_ENDS, example=images[:1], **options)
    # A small rate: the weights hardly move, so that every attention meets the same network.
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-6, momentum=0.9)

    def train() -> None:
        optimizer.zero_grad()
        cross_entropy(network(images), labels).backward()
        optimizer.step()

    def infer() -> None:
        with torch.no_grad():
            network(images)

    try:
        network.train()
        training = seconds_of(train)
        network.eval()
        return Cost(inserted.parameters, inserted.multiply_adds(), training, seconds_of(infer))
    finally:
        inserted.remove()


def seconds_of(step: Callable[[], None]) -> float:
    """The median time of a step. The first is to warm up and does not count, unless it took all the time."""
    times: list[float] = []
    while not times or (len(times) <= REPEATS and sum(times) < SECONDS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:] or times)
