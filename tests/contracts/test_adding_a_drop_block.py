"""CONTRIBUTING's example of a new drop block is all that it takes: it runs, and trains a step."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from wsol.config_file import config_from_dict
from wsol.models.localizer import build_localizer
from wsol.registry import DROPS


def test_the_example_trains_a_step(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = (repository / "CONTRIBUTING.md").read_text().partition("## Add a drop block")[2]
    found = re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert found
    assert len(found[1].splitlines()) <= 20
    monkeypatch.setattr(DROPS, "_entries", dict(DROPS.entries()))  # it goes when the test ends
    exec(compile(found[1], "CONTRIBUTING.md", "exec"), {"__name__": "example"})

    config = config_from_dict(
        {
            "model": {
                "backbone": "tiny",
                "weights": "none",
                "drop": {"name": "strips", "height": 3},
                "head": {"name": "cam", "channels": 8},
            }
        }
    )
    localizer = build_localizer(config.model, classes=4)
    optimizer = torch.optim.SGD(localizer.parameters(), lr=0.01)
    images, labels = torch.randint(0, 256, (4, 3, 64, 64), dtype=torch.uint8), torch.arange(4)
    before = localizer.state_dict()["head.class_maps.0.weight"].clone()
    losses = localizer.loss(localizer(images), labels)
    torch.stack(list(losses.values())).sum().backward()
    optimizer.step()
    assert not torch.equal(before, localizer.state_dict()["head.class_maps.0.weight"])

    tap = localizer.taps["stem"]
    x = torch.ones(2, 3, 8, 8)
    hidden = (tap.train()(x) == 0).all(dim=(0, 1, 3))
    assert 1 <= hidden.sum() <= 3
    assert tap.eval()(x) is x
