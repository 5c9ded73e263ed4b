"""timm's models and weights, for the backbones that are made of them.

timm is imported where it is used: it takes seconds, and every config that is read imports this module.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from wsol.errors import ConfigError
from wsol.models.weights import Loaded, Normalisation, Weights, download, reason_of
from wsol.registry import suggest

WEIGHTS_FILE = "model.safetensors"


def timm_network(name: str, **options: Any) -> Any:
    """The timm model `name` with new weights and without its classifier.

    Raises:
        ConfigError: timm has no such model, or it does not take the options.
    """
    import timm

    if name.partition(".")[0] not in timm.list_models():
        raise ConfigError(f"model.backbone: timm has no model {name!r}{suggest(name, timm.list_models())}")
    try:
        return timm.create_model(name, pretrained=False, num_classes=0, **options)
    except (TypeError, ValueError, AssertionError, NotImplementedError, RuntimeError) as error:
        raise ConfigError(f"model.backbone: timm cannot build {name!r} with {options}: {error}") from None


def timm_with_classifier(name: str, classes: int | None = None) -> Any:
    """The timm model `name` with new weights and its classifier. classes: how many; None for its own number.

    Raises:
        ConfigError: timm has no such model, or cannot build it.
    """
    import timm

    if name.partition(".")[0] not in timm.list_models():
        raise ConfigError(f"timm has no model {name!r}{suggest(name, timm.list_models())}")
    try:
        return timm.create_model(name, pretrained=False, num_classes=classes)
    except (TypeError, ValueError, AssertionError, NotImplementedError, RuntimeError) as error:
        raise ConfigError(f"timm cannot build {name!r}: {error}") from None


def timm_normalisation(network: Any) -> Normalisation:
    """What the model's own weights expect of its input."""
    config = network.pretrained_cfg
    return Normalisation(
        tuple(config["mean"]), tuple(config["std"]), f"what timm's weights {_tag(network)} expect"
    )


def timm_public(network: Any) -> Path:
    """The model's own weights, from the hub or timm's site."""
    config = network.pretrained_cfg
    if config.get("hf_hub_id"):
        return _from_hub(config["hf_hub_id"])
    if config.get("url"):
        return download(config["url"])
    raise FileNotFoundError(f"timm publishes no weights for {_tag(network)}")


def _tag(network: Any) -> str:
    config = network.pretrained_cfg
    return ".".join(str(config[key]) for key in ("architecture", "tag") if config.get(key))


def timm_weights(weights: Weights, network: Any, hint: str = "") -> Loaded:
    """Load `weights` into a timm model; its own ones come from the hub, and tell the normalisation."""
    return weights.load(network, timm_normalisation(network), lambda: timm_public(network), hint=hint)


def _from_hub(repository: str) -> Path:
    """The weights in timm's part of the model hub; the network is only asked where the cache lacks them."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(repository, WEIGHTS_FILE, local_files_only=True))
    except LocalEntryNotFoundError:
        problem = _hub_problem(repository)
        if problem:  # the hub's own package would try for half a minute, with a message for each time
            raise ConnectionError(problem) from None
        return Path(hf_hub_download(repository, WEIGHTS_FILE))


def why_out_of_reach(name: str) -> str | None:
    """Why the public weights of the timm model `name` cannot be had now; None where they are on this disk, or
    where their server answers. Nothing is downloaded."""
    import timm
    from huggingface_hub import try_to_load_from_cache

    repository = getattr(timm.get_pretrained_cfg(name), "hf_hub_id", None)
    if not repository:
        return f"timm publishes no weights for {name}"
    if isinstance(try_to_load_from_cache(repository, WEIGHTS_FILE), str):
        return None
    return _hub_problem(repository)


def _hub_problem(repository: str, seconds: float = 5.0) -> str | None:
    """Why the hub does not give the weights now; None where it answers."""
    from huggingface_hub import constants, hf_hub_url

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set, and they were not downloaded before"
    url = hf_hub_url(repository, WEIGHTS_FILE)
    try:
        with urlopen(Request(url, method="HEAD"), timeout=seconds):
            return None
    except (OSError, ValueError) as error:  # urllib's errors are OSErrors; a strange proxy is a ValueError
        return f"{urlparse(url).hostname} does not answer: {reason_of(error)}"
