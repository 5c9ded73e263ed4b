"""Exported files give what the localizer gives, at any batch size, by the libraries that run them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from wsol.cli import main
from wsol.config import Backbone, Data, Head, Model
from wsol.data.index import open_dataset
from wsol.data.transforms import View
from wsol.errors import ConfigError
from wsol.models.export import ModelCard, export
from wsol.models.localizer import Localizer, build_localizer
from wsol.run import Run


def images(num: int) -> torch.Tensor:
    return torch.randint(0, 256, (num, 3, 64, 64), dtype=torch.uint8, generator=torch.manual_seed(num))


@torch.inference_mode()
def expected(run: Path, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    output = Run(run).localizer("cpu")(batch)
    return output.logits, output.maps


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["se", "gpca"])
def test_torch_program_agrees_at_every_batch_size(
    attention: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run = request.getfixturevalue(f"{attention}_run")
    out = tmp_path / "bird.pt2"
    assert main(["export", str(run), "--format", "torch", "--out", str(out)]) == 0
    program = torch.export.load(out).module()
    for num in (1, 2, 5):
        for got, wanted in zip(program(images(num)), expected(run, images(num)), strict=True):
            torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_onnxruntime_agrees_at_every_batch_size(se_run: Path, tmp_path: Path) -> None:
    runtime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    out = tmp_path / "deep" / "bird.onnx"
    assert main(["export", str(se_run), "--format", "onnx", "--out", str(out)]) == 0
    session = runtime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    assert [i.type for i in session.get_inputs()] == ["tensor(uint8)"]
    for num in (1, 3, 8):
        results = session.run(["logits", "maps"], {"images": images(num).numpy()})
        for got, wanted in zip(results, expected(se_run, images(num)), strict=True):
            np.testing.assert_allclose(got, wanted.numpy(), atol=1e-3)

    card = json.loads(out.with_suffix(".json").read_text())
    assert card["classes"] == list(Run(se_run).classes)
    assert card["input"]["shape"] == ["batch", 3, 64, 64]
    assert (card["protocol"], card["threshold"]) == ("gpca", 0.2)
    assert sorted(p.name for p in out.parent.iterdir()) == ["bird.json", "bird.onnx"]  # nothing left over


def test_gpca_is_refused_for_onnx_with_the_reason_and_the_way_out(
    gpca_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(gpca_run), "--format", "onnx", "--out", str(tmp_path / "x.onnx")]) == 2
    message = capsys.readouterr().err
    assert "ONNX has no Cholesky" in message
    assert "--format torch" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_danet_is_written_where_onnx_has_its_operators(birds: Path, tmp_path: Path) -> None:
    runtime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    data = open_dataset(Data.of("cub", root=birds))
    card = ModelCard(data.classes, View("resize", 64), "gpca", 0.2, {})

    def build(fuse: str) -> Localizer:
        head = Head.of("danet", fuse=fuse, levels=("species", "family"), channels=16)
        model = Model(Backbone("tiny"), weights="none", head=head)
        return build_localizer(model, len(data.classes), data.hierarchy).eval()

    fused = build("ancestors")
    export(fused, "onnx", tmp_path / "a.onnx", card)
    with torch.inference_mode():
        output = fused(images(3))
        wanted = fused.maps_for(output, torch.arange(4).expand(3, -1))
    session = runtime.InferenceSession(str(tmp_path / "a.onnx"), providers=["CPUExecutionProvider"])
    (maps,) = session.run(["maps"], {"images": images(3).numpy()})
    np.testing.assert_allclose(maps, wanted.numpy(), atol=1e-3)

    with pytest.raises(
        ConfigError, match=r"as ONNX \(No ONNX function.*sort.*\); export it with --format torch"
    ):
        export(build("ranked"), "onnx", tmp_path / "b.onnx", card)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "a.onnx"]


def test_missing_onnx_is_named_with_what_to_install(
    se_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "onnxscript" else real(name, *rest)
    )
    assert main(["export", str(se_run), "--format", "onnx", "--out", str(tmp_path / "x.onnx")]) == 2
    assert "pip install onnx onnxscript" in capsys.readouterr().err


def test_an_existing_file_is_not_replaced_silently(
    se_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bird.pt2"
    out.write_text("precious")
    assert main(["export", str(se_run), "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert out.read_text() == "precious"
