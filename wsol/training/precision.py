"""`train.amp`: in which precision a training step computes."""

from __future__ import annotations

from dataclasses import replace

import torch

from wsol.config import Config
from wsol.config_file import load_config
from wsol.cores import bf16_instructions
from wsol.runs.folder import RunFolder

DTYPES = {"none": None, "bf16": torch.bfloat16, "fp16": torch.float16}

SLOW_BF16 = (
    "train.amp: bf16 is slow on this processor, which has no instructions for it; train.amp=none is faster"
)


def decide_precision(config: Config, folder: RunFolder, device: torch.device) -> Config:
    """The config with `amp: auto` replaced by what it means for this run.

    It is what the run in the folder was begun with, if there is one: a run that is continued on another
    machine keeps its precision. A new run takes bf16 where the device computes in it, and `none` elsewhere.
    """
    if config.train.amp != "auto":
        return config
    if folder.config.exists():
        amp = load_config(folder.config, of_run=True).train.amp
    else:
        amp = "bf16" if computes_in_bf16(device) else "none"
    return replace(config, train=replace(config.train, amp=amp))


def computes_in_bf16(device: torch.device) -> bool:
    """Whether bf16 is faster there than single precision."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return bool(bf16_instructions())


def slow_precision(amp: str, device: torch.device) -> str | None:
    """What to tell a user who chose a precision that is slow on this device; None where all is well."""
    known_to_lack_bf16 = device.type == "cpu" and bf16_instructions() == ()
    return SLOW_BF16 if amp == "bf16" and known_to_lack_bf16 else None
