"""The scripts behind tables of the docs, on painted birds."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from scripts import attention_experiment, methods_on_real_birds
from scripts.written_part import END, begin

TINY = {
    "data.classes": "all",
    "data.image_size": "64",
    "data.resize": "72",
    "data.workers": "0",
    "model.backbone": "tiny",
    "model.weights": "none",
    "train.freeze": "null",
    "train.epochs": "1",
    "train.batch_size": "8",
    "train.device": "cpu",
}


def rows_of(text: str) -> list[list[str]]:
    """The cells of the lines of tables."""
    return [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")
    ]


def call(monkeypatch: pytest.MonkeyPatch, script: object, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["script", *arguments])
    script.main()  # type: ignore[attr-defined]


def test_the_experiment_with_attentions(
    birds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [part for key, value in TINY.items() for part in ("--set", f"{key}={value}")]
    common = [str(tmp_path), "--data", str(birds), "--weights", "none", "--heads", "cam", *settings]
    attentions = ["--attentions", "constant", "gpca-unit-fast"]
    call(monkeypatch, attention_experiment, "choose", *common, *attentions)
    call(monkeypatch, attention_experiment, "confirm", *common, *attentions, "--seeds", "0", "1")
    # What is done stays as it is.
    done = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    call(monkeypatch, attention_experiment, "choose", *common, *attentions)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == done
    capsys.readouterr()
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n\n{begin('attention_experiment.py')}\n\n| old |\n{END}\n\nafter\n")
    call(monkeypatch, attention_experiment, "tables", str(tmp_path), "--page", str(page))
    rows = rows_of(capsys.readouterr().out)
    assert rows_of(page.read_text()) == rows
    assert page.read_text().startswith("# Before\n")
    assert page.read_text().endswith("\n\nafter\n")
    chosen, confirmed = rows[2:4], rows[6:8]
    assert [row[1] for row in chosen] == [row[1] for row in confirmed] == ["constant", "gpca-unit-fast"]
    assert chosen[0][5:7] == ["0.500", "0.0000"]  # the masks of the control
    assert [row[2] for row in confirmed] == ["2", "2"]  # seeds
    assert confirmed[0][6] == "-"  # the control has no difference from itself
    assert "p " in confirmed[1][6]
    assert len(rows) == 10  # two heads or more are taken together
    for folder in list((tmp_path / "confirm").glob("cam_*")):
        shutil.copytree(folder, folder.with_name(folder.name.replace("cam", "adl", 1)))
    call(monkeypatch, attention_experiment, "tables", str(tmp_path))
    pooled = rows_of(capsys.readouterr().out)[-1]
    assert pooled[:3] == ["gpca-unit-fast", "CAM, ADL", "4"]
    assert pooled[3].split()[0] == confirmed[1][6].split()[0]  # the same pairs twice have the same mean


def test_the_table_of_methods(
    birds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(methods_on_real_birds, "METHODS", ("cam",))
    monkeypatch.setattr(methods_on_real_birds, "TIMED_IMAGES", 2)
    monkeypatch.setattr(methods_on_real_birds, "SLOW", "gradcam")
    options = [
        str(tmp_path),
        "--data",
        str(birds),
        "--classifier",
        "torchvision:resnet18",
        "--weights",
        "none",
    ]
    call(monkeypatch, methods_on_real_birds, "measure", *options, "--finer", "layer3")
    call(monkeypatch, methods_on_real_birds, "time", *options)
    capsys.readouterr()
    call(monkeypatch, methods_on_real_birds, "table", str(tmp_path))
    rows = rows_of(capsys.readouterr().out)
    names = ["resnet18-bagcams-layer3", "resnet18-cam", "resnet18-layercam-layer3", "resnet18-gradcam"]
    assert [row[0] for row in rows[2:]] == [*names, "centre box"]
    assert [row[5] == "-" for row in rows[2:]] == [True, False, True, False, True]  # only two were timed
    assert all(0 <= float(cell) <= 100 for cell in rows[3][1:5])
