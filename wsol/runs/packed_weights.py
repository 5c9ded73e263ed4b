"""The weights of a pack: a plain safetensors file, which runs no code when it loads.

Its tensors have the names of the model's own state, and its metadata say which checkpoint they are of::

    {"format": "pt", "checkpoint": "best.ckpt", "digest": "<SHA-256 of it>", "epoch": "12",
     "describes": "vgg16, adl, cam head, gpca, 200 classes"}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsol.errors import CheckpointError
from wsol.runs.files import open_regular, write_atomically

if TYPE_CHECKING:
    import torch


def write_weights(path: Path, model: Mapping[str, torch.Tensor], about: Mapping[str, str]) -> None:
    """Write the tensors of a model, each with memory of its own."""
    import safetensors.torch
    import torch

    own = {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in model.items()}
    write_atomically(path, safetensors.torch.save(own, {"format": "pt", **about}))


def read_weights(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The tensors and the metadata of `write_weights`. CheckpointError where the file is something else."""
    import safetensors.torch

    try:
        with open_regular(path) as file:
            content = file.read()
        tensors = safetensors.torch.load(content)
        about = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
        return tensors, {str(key): str(value) for key, value in about.items()}
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except Exception as error:  # of a damaged or made-up file
        raise CheckpointError(f"{path}: not the weights of a pack ({error})") from None
