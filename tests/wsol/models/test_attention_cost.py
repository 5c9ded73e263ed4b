"""The table of what attentions cost, and `wsol model --attentions`."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from torch import nn

import wsol
from wsol.cli import main
from wsol.models import attention_cost
from wsol.models.attention_cost import seconds_of, small_image_resnet50
from wsol.scoring.published import published_complexity

WIDTHS = (8, 16, 24, 32)


class Block(nn.Module):
    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.conv3 = nn.Conv2d(before, after, 3, stride=2, padding=1)
        self.bn3 = nn.BatchNorm2d(after)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.bn3(self.conv3(x)).relu()
        return out


def small_network() -> nn.Module:
    """Four layers of one block each, named as those of a ResNet: quick."""
    layers = {
        f"layer{i}": nn.Sequential(Block(before, after))
        for i, (before, after) in enumerate(zip((3, *WIDTHS), WIDTHS, strict=False), start=1)
    }
    end = {"pool": nn.AdaptiveAvgPool2d(1), "flat": nn.Flatten(), "fc": nn.Linear(WIDTHS[-1], 100)}
    return nn.Sequential(OrderedDict(layers | end))


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_cost, "small_image_resnet50", small_network)
    monkeypatch.setattr(attention_cost, "SECONDS", 0.0)


def test_the_network_is_the_papers() -> None:
    network = small_image_resnet50()
    assert sum(p.numel() for p in network.parameters()) == 23_705_252
    shapes = {}
    for name in ("layer1", "layer4"):
        network.get_submodule(name).register_forward_hook(
            lambda _m, _i, y, name=name: shapes.update({name: tuple(y.shape)})
        )
    with torch.no_grad():
        network.eval()(torch.zeros(1, 3, 32, 32))
    assert shapes == {"layer1": (1, 256, 32, 32), "layer4": (1, 2048, 4, 4)}


@pytest.mark.usefixtures("_quick")
def test_rows_stand_beside_the_papers() -> None:
    costs = wsol.attention_costs(["identity", "se", "gpca", "gcnet"], batch_size=2)
    rows = {row.attention: row for row in costs.rows}
    assert list(rows) == ["identity", "se", "gpca", "gpca variant=local", "gpca variant=mha", "gcnet"]
    assert (rows["identity"].parameters, rows["identity"].multiply_adds) == (0, 0)
    squeeze = sum(2 * C * (C // 4) for C in WIDTHS)
    assert (rows["se"].parameters, rows["se"].multiply_adds) == (squeeze, squeeze)
    assert rows["gpca"].multiply_adds > sum(C**3 for C in WIDTHS)
    assert rows["gpca variant=local"].multiply_adds < rows["gpca"].multiply_adds
    assert all(min(row.training, row.inference) > 0 for row in costs.rows)
    assert rows["se"].paper == published_complexity()["se"]
    assert rows["gcnet"].paper is None
    lines = str(costs).splitlines()
    assert lines[0].split()[:2] == ["attention", "parameters"]
    assert "26.41 s" in lines[3]
    assert "batch of 2" in lines[-1]
    assert "<table>" in costs._repr_html_()


@pytest.mark.usefixtures("_quick")
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "--attentions", "eca", "--batch-size", "1"]) == 0
    said = capsys.readouterr().out
    assert "odd(log2(C)/2 + 1/2)" in said
    assert "batch of 1" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name either a CONFIG or --attentions"),
        (["configs/demo.yaml", "--attentions"], "name either a CONFIG or --attentions"),
        (["--attentions", "gcpa"], "unknown attention 'gcpa'; did you mean 'gpca'"),
        (["--attentions", "se", "--batch-size", "0"], "batch size must be at least 1, got 0"),
    ],
)
def test_refused_in_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_first_step_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 9.0, 9.0, 9.1])  # the first step takes 9 seconds, the second 0.1
    monkeypatch.setattr(attention_cost.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(attention_cost, "SECONDS", 9.05)
    assert seconds_of(lambda: None) == pytest.approx(0.1)
    clock = iter([0.0, 10.0])
    assert seconds_of(lambda: None) == 10.0  # and where it took all the time, it is what there is


def test_the_papers_table_is_whole() -> None:
    table = published_complexity()
    assert len(table) == 9
    assert table["gpca"].training_seconds == 53.19
    assert table["bam"].inference_seconds == 2.13
    assert table["gpca variant=mha"].complexity == "O((C/h)^3)"
