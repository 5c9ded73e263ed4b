"""Every config in configs/ builds its model and takes one training step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from _pytest.mark import ParameterSet

from wsol.config import Config
from wsol.config_file import load_config
from wsol.data.dataset import Batch
from wsol.data.hierarchy import cub_hierarchy
from wsol.models.building import build_model
from wsol.models.heads.fitted import FittedHead
from wsol.models.localizer import build_localizer
from wsol.models.trainable import Trainable
from wsol.registry import OPTIMIZERS
from wsol.runs.folder import RunFolder
from wsol.runs.ranks import Ranks
from wsol.training.optimizer import make_optimizer
from wsol.training.precision import decide_precision
from wsol.training.schedules import make_schedule
from wsol.training.train_step import TrainStep

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
BASES = {"base.yaml", "base_wsoleval.yaml"}
FILES = sorted(p for p in CONFIGS.rglob("*.yaml") if p.name not in BASES)
CLASSES = (1, 2, 59, 101, 188)  # albatrosses, a gull, a pelican, a woodpecker: three orders and more families


def rows_of_the_table() -> set[str]:
    methods = {
        "vgg16": ("cam", "adl", "danet", "dgdm"),
        "mobilenet_v1": ("cam", "adl"),
        "resnet50": ("cam", "adl", "dgdm"),
    }
    plain = {f"{b}_{m}" for b, names in methods.items() for m in names}
    return plain | {f"{row}_{a}" for row in plain if not row.endswith("_cam") for a in ("se", "srp", "gpca")}


def rows_of_the_field() -> set[str]:
    """What the paper compares with, and BAS, on its three networks."""
    methods = ("bas", "acol", "spg", "has", "cutmix")
    return {f"{b}_{m}" for b in ("vgg16", "mobilenet_v1", "resnet50") for m in methods}


# Rows with a recipe of their own: epochs, batch, rate, weight decay, steps of the rate, stride of the maps.
# That of `vgg16_acol` is its authors', the others are wsolevaluation's. All other rows have the paper's.
TUNED = (50, 32)
STEPS = [14, 29, 44]
RECIPES_OF_THE_FIELD: dict[str, tuple[int, int, float, float, list[int], int]] = {
    "vgg16_acol": (60, 20, 1e-4, 5e-4, [], 8),
    "vgg16_spg": (*TUNED, 0.00012558923, 5e-4, STEPS, 16),
    "vgg16_has": (*TUNED, 0.00342891848, 5e-4, STEPS, 16),
    "vgg16_cutmix": (*TUNED, 0.00003220934, 5e-4, STEPS, 16),
    "resnet50_acol": (*TUNED, 0.00001700073, 1e-4, STEPS, 8),
    "resnet50_spg": (*TUNED, 0.00004521947, 1e-4, STEPS, 8),
    "resnet50_has": (*TUNED, 0.00361996526, 1e-4, STEPS, 8),
    "resnet50_cutmix": (*TUNED, 0.0003333722, 1e-4, STEPS, 8),
}


def test_there_is_one_config_for_each_row_of_the_table() -> None:
    assert len(rows_of_the_table()) == 27
    found = {p.stem for p in (CONFIGS / "cub").glob("*.yaml")}
    assert found == rows_of_the_table() | rows_of_the_field() | {"base", "base_wsoleval"}


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.name == "cub"], ids=lambda p: p.stem)
def test_a_row_is_what_its_name_says(path: Path) -> None:
    config = load_config(path)
    backbone = next(b for b in ("vgg16", "mobilenet_v1", "resnet50") if path.stem.startswith(b))
    method, *attention = path.stem.removeprefix(f"{backbone}_").split("_")
    assert config.model.backbone.name == backbone
    assert config.model.head.name == (method if method in ("danet", "bas", "acol", "spg") else "cam")
    assert [t.name for t in config.train.transforms] == ([method] if method in ("has", "cutmix") else [])
    assert config.model.drop.name == (method if method in ("adl", "dgdm") else "none")
    assert config.model.attention.name == (attention[0] if attention else "identity")
    assert config.model.weights == "imagenet"
    assert config.data.name == "cub"
    train = config.train
    papers = (100, 32, 0.001 if method == "bas" else 0.01, 5e-4, [80], 16)
    recipe = RECIPES_OF_THE_FIELD.get(path.stem, papers)
    steps = list(train.schedule.options["milestones"])
    found = (train.epochs, train.batch_size, train.lr, train.weight_decay, steps)
    assert found == recipe[:5]
    assert train.optimizer.name == "sgd"
    takes = OPTIMIZERS.options("sgd")
    momentum = train.optimizer.options.get("momentum", takes["momentum"].default)
    assert momentum == 0.9
    others = method == "bas" or path.stem in RECIPES_OF_THE_FIELD
    assert train.optimizer.options.get("nesterov", False) == others
    assert (config.data.image_size, config.data.resize) == (224, 256)


@pytest.mark.parametrize("stem", RECIPES_OF_THE_FIELD)
def test_a_recipe_of_the_field_has_its_maps_and_rates(stem: str) -> None:
    config = load_config(CONFIGS / "cub" / f"{stem}.yaml")
    localizer = build_localizer(replace(config.model, weights="none"), len(CLASSES))
    assert localizer.backbone.outline.last.stride == RECIPES_OF_THE_FIELD[stem][5]
    groups = make_optimizer(localizer, config.train).param_groups  # every name in `rates.named` exists
    rates = {p: group["multiplier"] for group in groups for p in group["params"]}
    named = {name: rates[p] for name, p in localizer.named_parameters()}
    fast = {"resnet50": "layer4", "vgg16": "class_maps"}[stem.split("_")[0]]
    assert {rate for name, rate in named.items() if fast in name and name.endswith("weight")} == {10}
    head = {rate for name, rate in named.items() if name.startswith("head.")}
    assert head == {"vgg16_acol": {10, 20}, "resnet50_acol": {1}, "resnet50_spg": {1}}.get(stem, {10})


CLASSIFIERS = [path for path in FILES if load_config(path).network is not None]
FITTED = [path for path in FILES if path not in CLASSIFIERS and load_config(path).model.head.fitted]


def rows() -> list[ParameterSet]:
    """Every config that is trained; of the large networks those without attention alone in a plain run."""
    large = [p for p in FILES if p.stem.startswith(("vgg16", "resnet50")) and p.stem.count("_") > 1]
    return [
        pytest.param(
            path,
            marks=[pytest.mark.long] if path in large else [],
            id=str(path.relative_to(CONFIGS).with_suffix("")),
        )
        for path in FILES
        if path not in FITTED and path not in CLASSIFIERS
    ]


@pytest.mark.parametrize("path", FITTED, ids=lambda path: path.stem)
def test_a_config_is_fitted(path: Path) -> None:
    config = load_config(path)
    torch.manual_seed(0)
    localizer = build_localizer(replace(config.model, weights="none"), len(CLASSES)).eval()
    head = localizer.head
    assert isinstance(head, FittedHead)
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    with torch.no_grad():
        head.fit([localizer.backbone(localizer.normalise(images), None, head.reads)])
        assert localizer(images).maps.any()


@pytest.mark.long
@pytest.mark.parametrize("path", rows())
def test_a_config_takes_a_step(path: Path, tmp_path: Path) -> None:
    config = decide_precision(small(load_config(path)), RunFolder(tmp_path), torch.device("cpu"))
    hierarchy = cub_hierarchy("danet").subset(CLASSES)
    torch.manual_seed(0)
    takes_a_step(build_localizer(config.model, len(CLASSES), hierarchy), config, side=64)


# What the paper prints: epochs, batch, milestones. All with SGD at 0.1 and a weight decay of 5e-4.
RECIPES = {
    "cifar": (300, 256, [150, 225]),
    "miniimagenet": (300, 128, [150, 225]),
    "imagenet32": (100, 256, [50, 75]),
    "imagenet": (100, 256, [50, 75]),
}
# Its networks on each data set.
PAPER = {
    "cifar": {"vgg16", "resnet50", "densenet40", "densenet_bc100"},
    "miniimagenet": {"vgg16", "resnet18", "resnet34"},
    "imagenet32": {"vgg16", "resnet18", "resnet34"},
    "imagenet": {"resnet18", "resnet50"},
}


def test_there_are_configs_for_the_networks_of_every_classification_table() -> None:
    for folder, networks in PAPER.items():
        rows = {f"{name}_gpca" for name in networks} | (networks if folder == "cifar" else set())
        assert {p.stem for p in (CONFIGS / folder).glob("*.yaml")} == rows | {"base"}


@pytest.mark.parametrize(
    "path", [p for p in CLASSIFIERS if p.parent != CONFIGS], ids=lambda p: f"{p.parent.name}/{p.stem}"
)
def test_a_classifier_is_trained_as_the_paper_says(path: Path) -> None:
    config = load_config(path)
    assert config.network is not None
    assert config.network.attention.name == ("gpca" if path.stem.endswith("_gpca") else "identity")
    assert config.network.after == "paper"
    assert path.stem.removesuffix("_gpca") in config.network.name
    train = config.train
    assert (train.epochs, train.batch_size, list(train.schedule.options["milestones"])) == RECIPES[
        path.parent.name
    ]
    assert (train.lr, train.weight_decay, train.optimizer.name) == (0.1, 5e-4, "sgd")
    assert (train.schedule.name, train.schedule.options["factor"]) == ("step", 0.1)
    large = path.parent.name in ("miniimagenet", "imagenet")
    data = config.data
    assert (data.image_size, data.resize, data.pad) == ((224, 256, 0) if large else (32, 32, 4))


@pytest.mark.long
@pytest.mark.parametrize("path", CLASSIFIERS, ids=lambda p: str(p.relative_to(CONFIGS).with_suffix("")))
def test_a_classifier_takes_a_step(path: Path) -> None:
    config = load_config(path, set={"data.image_size": 32})
    torch.manual_seed(0)
    takes_a_step(build_model(config, len(CLASSES)), config, side=32)


def takes_a_step(model: Trainable, config: Config, side: int) -> None:
    learner = TrainStep(model, config.train, Ranks(0, 1, torch.device("cpu")))
    model.train()
    before = {name: value.clone() for name, value in model.named_parameters()}
    images = torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8)
    guided = config.network is None and config.model.head.guided
    pixels = torch.randint(0, 2, (2, side, side), dtype=torch.uint8) if guided else None
    batch = Batch(images, torch.tensor([0, 4]), torch.arange(2), torch.zeros(2, dtype=torch.bool), pixels)
    # A step in the middle of the run, where no warm-up holds the rate back.
    learner.set_rate(config.train.lr * make_schedule(config.train.schedule, config.train.epochs, 10)(20))
    figures = learner.backward(batch)
    norm = learner.gradient_norm()
    learner.update()
    assert figures["loss"] > 0
    assert 0 < norm < float("inf")
    changed = [n for n, p in model.named_parameters() if not torch.equal(p, before[n])]
    assert len(changed) > len(before) / 2
    assert all(p.isfinite().all() for p in model.parameters())


def small(config: Config) -> Config:
    """The same model with a narrow head and no weights to download."""
    options = {**config.model.head.options, "channels": 8}
    head = replace(config.model.head, options=options)
    return replace(config, model=replace(config.model, weights="none", head=head))
