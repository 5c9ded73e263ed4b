"""timm's models and weights, for the backbones that are made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import timm

from wsol.errors import ConfigError
from wsol.models.weights import Loaded, Normalisation, Weights, download
from wsol.registry import suggest


def timm_network(name: str, **options: Any) -> Any:
    """The timm model `name` with new weights and without its classifier.

    Raises:
        ConfigError: timm has no such model, or it does not take the options.
    """
    if name.partition(".")[0] not in timm.list_models():
        raise ConfigError(f"model.backbone: timm has no model {name!r}{suggest(name, timm.list_models())}")
    try:
        return timm.create_model(name, pretrained=False, num_classes=0, **options)
    except (TypeError, ValueError, AssertionError, NotImplementedError, RuntimeError) as error:
        raise ConfigError(f"model.backbone: timm cannot build {name!r} with {options}: {error}") from None


def timm_weights(weights: Weights, network: Any, hint: str = "") -> Loaded:
    """Load `weights` into a timm model; its own ones come from the hub, and tell the normalisation."""
    config = network.pretrained_cfg
    tag = ".".join(str(config[key]) for key in ("architecture", "tag") if config.get(key))
    normalisation = Normalisation(
        tuple(config["mean"]), tuple(config["std"]), f"what timm's weights {tag} expect"
    )

    def imagenet() -> Path:
        if config.get("hf_hub_id"):
            return _from_hub(config["hf_hub_id"])
        if config.get("url"):
            return download(config["url"])
        raise FileNotFoundError(f"timm publishes no weights for {tag}")

    return weights.load(network, normalisation, imagenet, hint=hint)


def _from_hub(repository: str) -> Path:
    """The weights in timm's part of the model hub; the network is only asked where the cache lacks them."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(repository, "model.safetensors", local_files_only=True))
    except LocalEntryNotFoundError:
        return Path(hf_hub_download(repository, "model.safetensors"))
