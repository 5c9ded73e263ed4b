"""The table of a localizer, and the command that prints it."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from wsol.commands import model as command
from wsol.config import Attention, Backbone, Drop, Head, Model
from wsol.errors import WsolError
from wsol.models.localizer import Localizer, build_localizer
from wsol.models.summary import summarise
from wsol.notices import WsolNote

CONFIG = """\
data: {name: folder, root: nowhere, image_size: 64, resize: 72}
model:
  backbone: tiny
  weights: none
  drop: adl
  head: {name: danet, channels: 8, maps_per_class: 4}
  attention: se
"""


def tiny() -> Localizer:
    model = Model(
        backbone=Backbone.of("tiny"),
        weights="none",
        drop=Drop.of("adl"),
        head=Head.of("cam", channels=16),
        attention=Attention.of("se"),
    )
    return build_localizer(model, 12)


def test_rows_add_up_to_the_whole() -> None:
    localizer = tiny()
    summary = summarise(localizer, 96)
    assert summary.parameters == sum(p.numel() for p in localizer.parameters())
    assert [row.part for row in summary.rows] == [
        "stem",
        "stage1",
        "stage2",
        "stage3",
        "head.class_maps",
        "head.attention",
    ]
    assert localizer.training


def test_counts_by_hand() -> None:
    rows = {row.part: row for row in summarise(tiny(), 96).rows}
    assert rows["stem"].output == (16, 48, 48)
    assert rows["stem"].parameters == 3 * 16 * 9 + 2 * 16
    assert rows["stem"].multiply_adds == 3 * 16 * 9 * 48 * 48
    assert rows["stem"].tap == "ADL(drop_rate=0.75, gamma=0.9)"
    assert rows["stage3"].tap == ""
    assert rows["head.class_maps"].output == (12, 12, 12)
    assert rows["head.class_maps"].multiply_adds == 144 * (128 * 16 * 9 + 16 * 16 * 9 + 16 * 12)
    assert rows["head.attention"].multiply_adds == 12 * 3 * 2


def test_the_table_is_aligned() -> None:
    lines = str(summarise(tiny(), 96)).splitlines()
    assert lines[0].split() == ["part", "tap", "output", "parameters", "multiply-adds"]
    assert len({len(line) for line in lines if line.endswith(" M")} | {len(lines[0])}) == 1
    assert lines[-1].startswith("total")


def run(path: Path, *arguments: str) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    command.run(parser.parse_args([str(path), *arguments]))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    run(path, "--classes", "100")
    text = capsys.readouterr().out
    assert "head.class_maps.2" in text
    assert "400 x 8 x 8" in text  # a hundred species, four maps each
    assert "weights: none" in text
    with pytest.warns(WsolNote, match="no data set here; the 200 classes of CUB-200-2011 are used"):
        run(path)
    assert "800 x 8 x 8" in capsys.readouterr().out
    with pytest.raises(WsolError, match="danet: needs a hierarchy"):
        run(path, "--classes", "300")
    with pytest.raises(WsolError, match="8 is outside 32 to 4096"):
        run(path, "--classes", "100", "--set", "data.image_size=8")
