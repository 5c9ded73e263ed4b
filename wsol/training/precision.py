"""`train.amp`: in which precision a training step computes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from time import process_time

import torch
from torch import Tensor, nn

from wsol.config import Config
from wsol.config_file import load_config
from wsol.cores import bf16_instructions
from wsol.runs.folder import RunFolder

DTYPES = {"none": None, "bf16": torch.bfloat16, "fp16": torch.float16}

FASTER = 0.85  # bf16 must save this much to be chosen: below, the noise of a measurement would decide

SLOW_BF16 = (
    "train.amp: bf16 is slow on this processor, which has no instructions for it; train.amp=none is faster"
)


def decide_precision(config: Config, folder: RunFolder, device: torch.device) -> Config:
    """The config with `amp: auto` replaced by what it means for this run.

    It is what the run in the folder was begun with, if there is one: a run that is continued on another
    machine keeps its precision. A new run takes bf16 where that is faster on the device, else `none`.
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
    return bool(bf16_instructions()) and measured_bf16_share() < FASTER


@cache
def measured_bf16_share() -> float:
    """The time of a convolution in bf16 on the CPU, forward and backward, divided by its time in float32.

    The names of the instructions do not tell: of two processors with avx512_bf16, one trained MobileNet V1 in
    0.5 times the time of float32, and one without AMX beside it in 1.3 times. Takes a tenth of a second.
    """

    def seconds(layer: nn.Module, x: Tensor, bf16: bool) -> float:
        started = process_time()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = layer(x).sum()
        torch.autograd.grad(loss, [x, *layer.parameters()])
        return process_time() - started

    with torch.enable_grad(), torch.random.fork_rng(devices=[]):
        layer = nn.Conv2d(256, 256, 3, padding=1).to(memory_format=torch.channels_last)
        x = torch.rand(4, 256, 12, 12).to(memory_format=torch.channels_last).requires_grad_()
        times = [(seconds(layer, x, True), seconds(layer, x, False)) for _ in range(6)]
    in_bf16, single = zip(*times[1:], strict=True)  # the first one prepares the kernels
    return min(in_bf16) / min(single)


def slow_precision(amp: str, device: torch.device) -> str | None:
    """What to tell a user who chose a precision that is slow on this device; None where all is well."""
    known_to_lack_bf16 = device.type == "cpu" and bf16_instructions() == ()
    return SLOW_BF16 if amp == "bf16" and known_to_lack_bf16 else None
