"""`wsol.from_classifier`: boxes from any classifier, without training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from wsol.config import Classifier, Config, Data, Eval
from wsol.config_file import config_from_dict, config_to_dict, dump_config, load_config
from wsol.data.index import detect_kind, open_dataset
from wsol.data.record import DataRecord
from wsol.data.transforms import View
from wsol.errors import ConfigError, RunFolderError
from wsol.localization.classifier_finder import ClassifierFinder
from wsol.models.classifier.building import BuiltClassifier, build_classifier
from wsol.models.classifier.class_table import read_class_names, read_class_table
from wsol.runs.files import write_json, write_text
from wsol.runs.folder import RunFolder, default_run_dir, is_free
from wsol.runs.ranks import pick_device
from wsol.scoring.protocols import find_protocols

Triple = tuple[float, float, float]
CONFIG_ENDINGS = (".yaml", ".yml")


def from_classifier(
    model: nn.Module | Path | str,
    method: str = "cam",
    layer: str = "auto",
    *,
    weights: Path | str = "imagenet",
    variant: str | None = None,
    mean: Triple | None = None,
    std: Triple | None = None,
    classes: Sequence[str] | Path | str = (),
    table: Mapping[str, str] | Path | str | None = None,
    image_size: int | None = None,
    protocol: str = "gpca",
    threshold: float | None = None,
    device: str = "auto",
) -> ClassifierFinder:
    """A localizer from a plain classifier, for photos, for `wsol.localize` and for `wsol.evaluate`.

    The model stays as it is: parameters, buffers, hooks, mode and what takes gradients.

    Args:
        model: `torchvision:NAME`, `timm:NAME`, `module:function` (called without arguments, it returns the
            model), or an `nn.Module` from normalised images (N, 3, S, S) to scores (N, classes). Or a config
            file (.yaml) whose section `classifier` names one of the first three, and may set all from
            `method` to `table` too; an argument that is not the default goes before it.
        method: how maps are made: cam, gradcam, gradcam++, layercam, xgradcam, hirescam, scorecam, bagcams,
            rollout; `wsol list map_methods` describes them.
        layer: the dotted name of the layer whose features are used; `auto` is the last one with maps.
        weights: of a named model: `imagenet`, `none`, or a file.
        variant: `keras` for a ResNet whose weights were converted from Keras.
        mean, std: what the model expects of RGB in [0, 1]; None for what the named model's own weights
            expect, ImageNet's for an `nn.Module`.
        classes: the names of the classes, or a file with one on each line; by default ImageNet's.
        table: for `wsol.evaluate`: the data set's classes and the classifier's for them, or a CSV file.
        image_size: the side of the images; None for the model's own, or 224.
        protocol: how maps are cut into boxes. threshold: where; None for the protocol's own.
        device: where a named model goes: auto, cpu or cuda.

    Raises:
        ConfigError: a model, method or layer that does not exist, or that do not fit together.
        CheckpointError: weights that do not download, cannot be read or do not fit.

    >>> import torchvision, wsol
    >>> net = torchvision.models.resnet18(num_classes=5)
    >>> find = wsol.from_classifier(net, method="layercam", classes=list("abcde"), image_size=64)
    >>> find.layer, find("bird.jpg").name in find.classes
    ('layer4', True)
    """
    if threshold is not None and not 0 <= threshold < 1:
        raise ConfigError(f"threshold {threshold} is outside 0 to 1")
    if image_size is not None:
        for key, reason in Data(image_size=image_size, resize=max(256, image_size)).problems():
            raise ConfigError(f"{key}: {reason}")
    if isinstance(classes, (str, Path)):
        classes = read_class_names(Path(classes))
    if isinstance(table, (str, Path)):
        table = read_class_table(Path(table))
    if isinstance(model, (str, Path)):
        section, given = read_section(model), None
    else:
        _require_loaded_model(model, str(weights), variant)
        section, given = Classifier(f"<{type(model).__name__}>"), model
    arguments: dict[str, Any] = {
        "method": method,
        "layer": layer,
        "weights": str(weights) if given is None else "none",
        "variant": variant,
        "mean": mean,
        "std": std,
        "classes": tuple(classes),
        "table": dict(table or {}),
    }
    usual = Classifier(section.name)
    section = replace(section, **{k: v for k, v in arguments.items() if v != getattr(usual, k)})
    for key, reason in section.problems():
        raise ConfigError(f"{key}: {reason}")
    built = build_classifier(section, given, image_size, pick_device(device))
    return as_finder(built, protocol, threshold)


def _require_loaded_model(model: object, weights: str, variant: str | None) -> None:
    """Raise where what was given in Python is no model, or where its weights were to be changed here."""
    if not isinstance(model, nn.Module):
        raise ConfigError(
            f"{getattr(model, '__name__', repr(model))} is no torch.nn.Module: give the model itself, its "
            "name (torchvision:NAME, timm:NAME, module:function) or a config file"
        )
    if weights not in (Classifier("").weights, "none") or variant is not None:
        raise ConfigError("weights and variant are for a model by name: load the file into your model before")


def read_section(name: Path | str) -> Classifier:
    """The classifier that a name, or a config file, stands for.

    Raises:
        ConfigError: a file that cannot be read, has no section `classifier`, or has others.
    """
    if Path(name).suffix not in CONFIG_ENDINGS:
        return Classifier(str(name))
    config = load_config(Path(name))
    if config.classifier is None:
        raise ConfigError(f"{name}: no section `classifier`")
    if config != Config(classifier=config.classifier):
        raise ConfigError(f"{name}: sections beside `classifier` would not be read here; leave them out")
    return config.classifier


def as_finder(built: BuiltClassifier, protocol: str, threshold: float | None) -> ClassifierFinder:
    """A built classifier with what cuts its maps."""
    chosen = find_protocols(protocol)[0]
    return ClassifierFinder(
        built.localizer,
        built.classes,
        chosen.name,
        chosen.extraction,
        chosen.extraction.fixed if threshold is None else threshold,
        View(chosen.view, built.opened.image_size),
        built,
    )


def new_run_dir(finder: ClassifierFinder) -> Path:
    """Where its evaluation goes by default: `runs/<name>-<method>`, with -2, -3, ... if that is taken."""
    short = finder.built.config.name.rpartition(":")[2].strip("<>")
    return default_run_dir(f"{short}-{finder.method}", resume=False)


def start_run(finder: ClassifierFinder, data: Path | str, run_dir: Path | str | None = None) -> Path:
    """A new run folder for the evaluation of a classifier on a data set; nothing is trained in it.

    run_dir: None for `new_run_dir`.
    """
    built, root = finder.built, Path(data)
    path = Path(run_dir) if run_dir is not None else new_run_dir(finder)
    if not is_free(path):
        raise RunFolderError(
            f"{path}: not empty; score it again with `wsol evaluate {path}`, or choose another folder"
        )
    side = built.opened.image_size
    config = Config(
        data=Data(name=detect_kind(root), root=root.resolve(), image_size=side, resize=max(256, side)),
        eval=Eval(finder.protocol),
        classifier=built.config,
    )
    config = config_from_dict(config_to_dict(config))  # as it will be read again, with all of its checks
    index = open_dataset(config.data)
    folder = RunFolder(path)
    write_text(folder.config, dump_config(config), parents=True)
    write_json(folder.data, DataRecord.of(index, index.digest()).to_json())
    opened = built.opened
    record = {
        "origin": opened.weights,
        "sha256": opened.digest,
        "method": built.config.method,
        "layer": finder.layer,
        "mean": list(opened.normalisation.mean),
        "std": list(opened.normalisation.std),
    }
    write_json(folder.weights, record)
    return path
