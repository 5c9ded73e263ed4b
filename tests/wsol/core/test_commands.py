"""Small promises of single commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsol.cli import main


def test_model_builds_a_row_of_the_paper_without_the_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The data set need not be there: its 200 classes and their hierarchy are known."""
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text("model: {backbone: tiny, weights: none, head: {name: danet, channels: 8}}\n")
    assert main(["model", "c.yaml"]) == 0
    said = capsys.readouterr()
    assert "data/CUB_200_2011: no data set here; the 200 classes of CUB-200-2011 are used" in said.err
    assert "200 x" in said.out


def test_prepare_says_that_a_photo_is_no_archive(
    birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photo = next((birds / "images").rglob("*.jpg"))
    assert main(["data", "prepare", str(photo), str(tmp_path / "out")]) == 2
    assert "not an archive" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_birds_painted_otherwise_than_the_config_says_are_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path / "birds")
    assert main(["data", "synth", root, "--species", "2", "--train", "3", "--test", "1", "--size", "48"]) == 0
    config = tmp_path / "c.yaml"
    config.write_text(
        "data: {name: synthetic, train: 100, image_size: 48, resize: 48, workers: 0}\n"
        "model: {backbone: tiny, weights: none, head: {name: cam, channels: 4}}\n"
        "train: {epochs: 1, batch_size: 2, device: cpu}\n"
    )
    run = str(tmp_path / "run")
    assert main(["train", str(config), "--set", f"data.root={root}", "--run-dir", run]) == 0
    assert "training images: 6 instead of 1,200" in capsys.readouterr().err
