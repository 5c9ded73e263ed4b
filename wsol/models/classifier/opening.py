"""Classifiers by name: `torchvision:NAME`, `timm:NAME`, or `module:function` for one's own.

A function of one's own takes no argument and returns an `nn.Module` from normalised images (N, 3, S, S) to
scores (N, classes). It may load its weights itself, or leave that to a weights file::

    # my_nets.py
    def birds():
        return torchvision.models.resnet18(num_classes=40)
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from wsol.errors import CheckpointError, ConfigError
from wsol.models.weights import (
    IMAGENET,
    Normalisation,
    download,
    file_digest,
    listed,
    read_state_dict,
    reason_of,
)
from wsol.registry import suggest

IMAGENET_WEIGHTS, NO_WEIGHTS = "imagenet", "none"
SIDE = 224  # of the images, where the network does not say it

# With public weights, torchvision has these rescale their normalised input inside (`transform_input`).
FROM_TENSORFLOW = ("googlenet", "inception_v3")

Variant = Literal["torchvision", "keras"]


@dataclass(frozen=True)
class OpenedClassifier:
    """A classifier that is ready to be looked into.

    classes: names, one for each score; () where nobody told them. image_size: the side of its images.
    weights, digest: where its weights come from, and the SHA-256 of that file, '' where there is none.
    """

    model: nn.Module
    name: str
    classes: tuple[str, ...] = ()
    normalisation: Normalisation = IMAGENET
    image_size: int = SIDE
    weights: str = NO_WEIGHTS
    digest: str = ""


@dataclass(frozen=True)
class Blueprint:
    """A network without weights, and what is known of it. public: its ImageNet weights, once downloaded."""

    network: nn.Module
    classes: tuple[str, ...] = ()
    normalisation: Normalisation = IMAGENET
    image_size: int = SIDE
    public: Callable[[], Path] | None = None


def open_classifier(
    name: str, weights: str = IMAGENET_WEIGHTS, classes: Sequence[str] = (), variant: str | None = None
) -> OpenedClassifier:
    """The classifier of this name.

    weights: `imagenet` for its public ones, `none`, or a file that holds all of its tensors and no others.
    classes: the names of its classes, where they are not ImageNet's. variant: `keras` for a ResNet whose
    weights were converted from Keras.

    Raises:
        ConfigError: an unknown name or variant, or a function that does not return a model.
        CheckpointError: weights that do not download, cannot be read or do not fit.
    """
    family, colon, member = name.partition(":")
    if not colon or not member:
        raise ConfigError(f"classifier {name!r}: expected torchvision:NAME, timm:NAME or module:function")
    own_function = not is_public(name)
    if variant is not None and family != "torchvision":
        raise ConfigError(f"variant {variant!r}: {name} has no variants; torchvision's ResNets have")
    if own_function:
        made = Blueprint(_call(name))
    else:
        options = {} if variant is None else {"variant": variant}
        made = FAMILIES[family](member, tuple(classes), **options)
    if own_function and weights == IMAGENET_WEIGHTS:
        origin, digest = f"what {name} loads", ""
    else:
        origin, digest = _load(made, name, weights)
    known = made.classes if not classes else tuple(classes)
    return OpenedClassifier(
        made.network.eval(), name, known, made.normalisation, made.image_size, origin, digest
    )


def torchvision_classifier(
    name: str, classes: tuple[str, ...] = (), variant: Variant = "torchvision"
) -> Blueprint:
    """A classifier of torchvision.

    variant: `keras` moves the strides of a ResNet to its 1x1 convolutions; see the backbone resnet50.
    """
    import torchvision

    from wsol.models.backbones.resnet50 import move_strides_to_1x1

    known = torchvision.models.list_models(module=torchvision.models)
    if name not in known:
        raise ConfigError(f"torchvision has no classifier {name!r}{suggest(name, known)}")
    public = torchvision.models.get_model_weights(name).DEFAULT
    network = torchvision.models.get_model(name, weights=None, num_classes=len(classes) or 1000)
    if variant == "keras":
        if not hasattr(network, "layer4") or not hasattr(network.layer4[0], "conv3"):
            raise ConfigError(f"variant 'keras': {name} is no ResNet with bottlenecks")
        move_strides_to_1x1(network)
    elif variant != "torchvision":
        raise ConfigError(f"unknown variant {variant!r}{suggest(variant, ('torchvision', 'keras'))}")
    return Blueprint(
        network,
        tuple(public.meta["categories"]),
        torchvision_normalisation(name, public.transforms.keywords),
        public.transforms.keywords["crop_size"],
        lambda: download(public.url),
    )


def torchvision_normalisation(name: str, preset: Mapping[str, Any]) -> Normalisation:
    """What the public weights of a classifier of torchvision expect. preset: its options for test images.

    >>> torchvision_normalisation("googlenet", {}).mean, torchvision_normalisation("resnet18", {}).mean
    ((0.5, 0.5, 0.5), (0.485, 0.456, 0.406))
    """
    if name in FROM_TENSORFLOW:
        half = (0.5, 0.5, 0.5)
        return Normalisation(half, half, f"what torchvision turns its input into where it loads {name}")
    if "mean" in preset or "std" in preset:
        mean, std = preset.get("mean", IMAGENET.mean), preset.get("std", IMAGENET.std)
        return Normalisation(mean, std, f"torchvision's own for {name}")
    return IMAGENET


def timm_classifier(name: str, classes: tuple[str, ...] = ()) -> Blueprint:
    """A classifier of the timm library."""
    from wsol.models.timm_network import timm_normalisation, timm_public, timm_with_classifier

    network = timm_with_classifier(name, len(classes) or None)
    number = network.num_classes
    return Blueprint(
        network,
        _imagenet_names() if number == 1000 else (),
        timm_normalisation(network),
        network.pretrained_cfg["input_size"][-1],
        lambda: timm_public(network),
    )


FAMILIES: dict[str, Callable[..., Blueprint]] = {
    "torchvision": torchvision_classifier,
    "timm": timm_classifier,
}


def is_public(name: str) -> bool:
    """Whether a name is of a public library. Any other is of a function, which opening would call."""
    return name.partition(":")[0] in FAMILIES


def _imagenet_names() -> tuple[str, ...]:
    import torchvision

    return tuple(torchvision.models.ResNet50_Weights.DEFAULT.meta["categories"])


def _call(name: str) -> nn.Module:
    """What `module:function` returns; the module is looked for in this folder first, as plugins are."""
    module, _, function = name.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        made = getattr(importlib.import_module(module), function)()
    except Exception as error:  # code of the user's own: whatever it raises
        raise ConfigError(f"classifier {name}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)
    if not isinstance(made, nn.Module):
        raise ConfigError(f"classifier {name}: returned {type(made).__name__}, not an nn.Module")
    return made


def _load(made: Blueprint, name: str, weights: str) -> tuple[str, str]:
    """Fill the network; (where the weights come from, the digest of the file)."""
    if weights == NO_WEIGHTS:
        return "none", ""
    if weights == IMAGENET_WEIGHTS:
        assert made.public is not None
        try:
            path = made.public()
        except Exception as error:  # urllib's, huggingface_hub's and the disk's errors have no common base
            raise CheckpointError(
                f"cannot download the weights of {name} ({reason_of(error)}); give a file with --weights, "
                "or `none`"
            ) from error
        origin = f"{weights} ({path.name})"
    else:
        path, origin = Path(weights), Path(weights).name
        if not path.is_file():
            raise CheckpointError(f"{path}: no such weights file; give a file, `imagenet` or `none`")
    _fill(made.network, path)
    return origin, file_digest(path)


def _fill(network: nn.Module, path: Path) -> None:
    """Load every tensor of the file into the network; one that is missing, left over or misshapen raises."""
    state, own = read_state_dict(path), network.state_dict()
    # Old checkpoints lack BatchNorm's step counter.
    missing = [k for k in own if k not in state and not k.endswith("num_batches_tracked")]
    extra = [k for k in state if k not in own]
    wrong = [
        f"{k} {tuple(state[k].shape)} for {tuple(own[k].shape)}"
        for k in own
        if k in state and state[k].shape != own[k].shape
    ]
    for words, names in (("lacks", missing), ("has left over", extra), ("has other shapes:", wrong)):
        if names:
            hint = "; name its classes (--classes)" if len(wrong) in (1, 2) and not missing else ""
            raise CheckpointError(f"{path}: not of this classifier: it {words} {listed(names)}{hint}")
    network.load_state_dict(state, strict=False)


def model_digest(model: nn.Module) -> str:
    """SHA-256 over the names and values of all tensors of a model."""
    sha = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        sha.update(name.encode())
        if isinstance(tensor, torch.Tensor):
            sha.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()
