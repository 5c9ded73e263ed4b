"""Every generator continues where it was."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import torch

from wsol.config import Config
from wsol.models.localizer import build_localizer
from wsol.training.random_state import capture, restore, seed_everything


def test_all_generators_come_back(make_config: Callable[..., Config]) -> None:
    config = make_config(model__drop="dgdm", model__attention="srp")
    localizer = build_localizer(config.model, classes=4)
    localizer.seed(3)
    assert len(list(localizer.random_modules())) == 4  # three drop blocks and SRP
    seed_everything(5)
    random.gauss(0, 1)  # leaves a second draw behind, which is part of the state
    np.random.standard_normal()  # noqa: NPY002

    def draws() -> list[float]:
        images = torch.linspace(0, 1, 2 * 3 * 64 * 64).reshape(2, 3, 64, 64)
        with torch.no_grad():
            logits = localizer.train()(images).logits
        return [
            random.gauss(0, 1),
            random.random(),
            float(np.random.standard_normal()),  # noqa: NPY002
            torch.rand(()).item(),
            *(state.double().sum().item() for state in capture(localizer)["modules"].values()),
            float(len(logits)),
        ]

    state = capture(localizer)
    first = draws()
    assert draws() != first
    restore(state, localizer)
    assert draws() == first
