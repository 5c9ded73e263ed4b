"""Exported files give what the localizer gives, at any batch size, by the libraries that run them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from wsol.config import Attention, Backbone, Head, Model
from wsol.data.hierarchy import Hierarchy
from wsol.data.transforms import View
from wsol.errors import ConfigError, RunFolderError, WsolError
from wsol.models.export import ModelCard, export
from wsol.models.localizer import Localizer, build_localizer

TREE = Hierarchy.from_table(
    ("species", "family", "order"), [(f"species {i}", f"family {i // 2}", "order") for i in range(4)]
)
CARD = ModelCard([f"species {i}" for i in range(4)], View("resize", 64), "gpca", 0.2, {"run": "runs/x"})


def build(attention: str = "se", head: Head | None = None) -> Localizer:
    torch.manual_seed(0)
    model = Model(
        Backbone("tiny"),
        weights="none",
        head=head or Head.of("cam", channels=16),
        attention=Attention.of(attention),
    )
    return build_localizer(model, 4, TREE).eval()


def images(num: int) -> torch.Tensor:
    return torch.randint(0, 256, (num, 3, 64, 64), dtype=torch.uint8, generator=torch.manual_seed(num))


@torch.inference_mode()
def expected(localizer: Localizer, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    output = localizer(batch)
    return output.logits, output.maps


@pytest.mark.long
@pytest.mark.parametrize("attention", ["se", "gpca"])
def test_torch_program_agrees_at_every_batch_size(attention: str, tmp_path: Path) -> None:
    out = tmp_path / "bird.pt2"
    localizer = build(attention)
    export(localizer, "torch", out, CARD)
    program = torch.export.load(out).module()
    for num in (1, 2, 5):
        for got, wanted in zip(program(images(num)), expected(localizer, images(num)), strict=True):
            torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("attention", ["se", "gpca"])
def test_onnxruntime_agrees_at_every_batch_size(attention: str, tmp_path: Path) -> None:
    runtime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    out = tmp_path / "deep" / "bird.onnx"
    localizer = build(attention)
    assert export(localizer, "onnx", out, CARD) == out.with_suffix(".json")
    assert b".py" not in out.read_bytes(), "it holds no line of this code, and no path of this machine"
    session = runtime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    assert [i.type for i in session.get_inputs()] == ["tensor(uint8)"]
    for num in (1, 3, 8):
        results = session.run(["logits", "maps"], {"images": images(num).numpy()})
        for got, wanted in zip(results, expected(localizer, images(num)), strict=True):
            np.testing.assert_allclose(got, wanted.numpy(), atol=1e-3)

    card = json.loads(out.with_suffix(".json").read_text())
    assert card["classes"] == list(CARD.classes)
    assert card["input"]["shape"] == ["batch", 3, 64, 64]
    assert (card["protocol"], card["threshold"], card["run"]) == ("gpca", 0.2, "runs/x")
    assert sorted(p.name for p in out.parent.iterdir()) == ["bird.json", "bird.onnx"]  # nothing left over


@pytest.mark.long
def test_danet_is_written_where_onnx_has_its_operators(tmp_path: Path) -> None:
    runtime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")

    def danet(fuse: str) -> Localizer:
        return build(head=Head.of("danet", fuse=fuse, levels=("species", "family"), channels=16))

    fused = danet("ancestors")
    export(fused, "onnx", tmp_path / "a.onnx", CARD)
    with torch.inference_mode():
        output = fused(images(3))
        wanted = fused.maps_for(output, torch.arange(4).expand(3, -1))
    session = runtime.InferenceSession(str(tmp_path / "a.onnx"), providers=["CPUExecutionProvider"])
    (maps,) = session.run(["maps"], {"images": images(3).numpy()})
    np.testing.assert_allclose(maps, wanted.numpy(), atol=1e-3)

    with pytest.raises(
        ConfigError, match=r"as ONNX \(No ONNX function.*sort.*\); export it with --format torch"
    ):
        export(danet("ranked"), "onnx", tmp_path / "b.onnx", CARD)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "a.onnx"]


def test_missing_onnx_is_named_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "onnxscript" else real(name, *rest)
    )
    with pytest.raises(WsolError, match=r"pip install 'wsol\[onnx\]'"):
        export(build(), "onnx", tmp_path / "x.onnx", CARD)


@pytest.mark.parametrize("taken", ["bird.pt2", "bird.json"])
def test_an_existing_file_is_not_replaced_silently(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("precious")
    with pytest.raises(RunFolderError, match=rf"{taken}: already exists"):
        export(build(), "torch", tmp_path / "bird.pt2", CARD)
    assert [p.name for p in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text() == "precious"


def test_the_card_never_takes_the_name_of_the_model(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"m\.json: .* the card beside the model; name the model m\.pt2"):
        export(build(), "torch", tmp_path / "m.json", CARD, overwrite=True)
    assert list(tmp_path.iterdir()) == []
