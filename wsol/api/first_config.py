"""The text of a first config for a folder of photos: sensible values, each with the reason beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import yaml

from wsol.data.survey import Survey

LEAST_FOR_TEST = 5  # photos of each class from which on some are held out for a test
LEAST_FOR_VALIDATION = 10  # training photos of each class from which on some of these are held out
FEW = 500  # training photos below which most of a pretrained network stays as it is
LARGEST_BATCH, FEWEST_EPOCHS, MOST_EPOCHS = 32, 10, 100


@dataclass(frozen=True)
class FirstNetwork:
    """A network to start with. steps: how many to train for, about. stays: the stage up to which it stays as
    loaded where photos are few."""

    backbone: str
    weights: str
    image_size: int
    resize: int
    channels: int
    steps: int
    lr: float
    stays: str | None = None


# The recipe of configs/cub40, and one for CAM on the network of the demo, for any number of photos.
PRETRAINED = FirstNetwork(
    "mobilenet_v1", "imagenet", 192, 216, channels=256, steps=400, lr=0.01, stays="blocks3"
)
FROM_SCRATCH = FirstNetwork("tiny", "none", 128, 144, channels=64, steps=2000, lr=0.03)

Setting = tuple[Any, str]  # a value and the comment beside it


def choose_test_share(found: Survey) -> float | None:
    """The part of the photos for test; None where the data set itself tells which they are."""
    if "test_share" not in found.options or found.index.split("test"):
        return None
    return 0.2 if found.boxed and min(found.per_class("train")) >= LEAST_FOR_TEST else 0.0


def config_text(
    found: Survey, test_share: float | None, problem: str | None, weights: str | None = None
) -> str:
    """The config as commented YAML.

    problem: why pretrained weights cannot be had, None where they can. weights: the user's own file of them.
    """
    network = FROM_SCRATCH if problem else replace(PRETRAINED, weights=weights or PRETRAINED.weights)
    counts = found.per_class("train")
    val_share = 0.1 if min(counts) >= LEAST_FOR_VALIDATION else 0.0
    training = sum(counts) - round(val_share * sum(counts))
    batch = 2 ** int(math.log2(min(max(training // 2, 2), LARGEST_BATCH)))
    steps = max(training // batch, 1)
    epochs = min(max(math.ceil(network.steps / steps), FEWEST_EPOCHS), MOST_EPOCHS)
    few = training < FEW
    data: dict[str, Setting] = {
        "name": (found.kind, ""),
        "root": (str(found.index.root.resolve()), ""),
        "annotations": (
            found.annotations and str(found.annotations.resolve()),
            "true boxes: to measure, never to train",
        ),
        "test_share": (test_share, _about_test(found, test_share)),
        "image_size": (network.image_size, "pixels: side of the square that the network sees"),
        "resize": (network.resize, "pixels: side before a part of it is cut out at random in training"),
        "val_share": (val_share, _about_validation(found, val_share)),
        "workers": (0 if few else 2, "processes that read photos beside the training"),
        "on_bad_image": ("skip" if found.bad else None, "'wsol data check' lists what is left out"),
    }
    model: dict[str, Setting] = {
        "backbone": (network.backbone, ""),
        "weights": (
            network.weights,
            "from scratch: the pretrained weights could not be had"
            if problem
            else "pretrained" + ("" if weights else ": downloaded once, 17 MB"),
        ),
        "drop": (
            "adl" if found.boxed and not problem else None,
            "hides what tells most in training, so that the box covers more of the object",
        ),
        "head": ({"name": "cam", "channels": network.channels}, ""),
    }
    train: dict[str, Setting] = {
        "epochs": (epochs, f"{epochs * steps:,} steps in all"),
        "batch_size": (batch, ""),
        "lr": (network.lr, ""),
        "optimizer": ({"name": "sgd", "nesterov": True}, ""),
        "clip_norm": (5.0, ""),
        "freeze": (
            network.stays if few else None,
            "few photos: up to this stage the network stays as it is",
        ),
        "schedule": ({"name": "cosine", "warmup_epochs": 1}, ""),
        "validate_every": (5 if val_share else None, "epochs"),
    }
    lines = [
        f"# A localizer of {len(found.index.classes):,} classes, learnt from the labels of "
        f"{len(found.index.samples):,} photos. Written by 'wsol init'.",
        "# 'wsol list' shows every name that can stand here. '--set a.b=c' changes a value for one run.",
    ]
    for section, settings in (("data", data), ("model", model), ("train", train)):
        lines.append(f"{section}:")
        for key, (value, about) in settings.items():
            if value is not None:
                lines.append(f"  {key}: {_yaml(value)}" + (f"  # {about}" if about else ""))
    return "\n".join(lines) + "\n"


def _about_test(found: Survey, test_share: float | None) -> str:
    if test_share:
        return "of the photos of each class, for 'wsol evaluate'"
    if not found.boxed:
        return "all photos are for training: without boxes there is nothing to measure on others"
    return f"all photos are for training: a class has fewer than {LEAST_FOR_TEST}"


def _about_validation(found: Survey, val_share: float) -> str:
    if not val_share:
        return f"nothing is held out: a class has fewer than {LEAST_FOR_VALIDATION} training photos"
    purpose = "to watch the training" + (" and to choose the threshold" if found.boxed else "")
    return f"of the training photos, held out {purpose}"


def _yaml(value: Any) -> str:
    """A value as YAML writes it, on one line."""
    text = yaml.safe_dump(
        [value], default_flow_style=True, width=float("inf"), allow_unicode=True, sort_keys=False
    )
    return str(text).strip()[1:-1]
