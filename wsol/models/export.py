"""A localizer as a program that needs none of this code: a `torch.export` program or an ONNX graph.

Both take RGB images as uint8 (N, 3, S, S), resized as the localizer was trained, and return `logits`
(N, classes) and `maps` (N, classes, h, w), the class maps at test. Normalisation is inside. N is free.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wsol.data.transforms import View
from wsol.errors import ConfigError, RunFolderError, WsolError
from wsol.models.localizer import Localizer
from wsol.runs.files import write_atomically, write_json

SUFFIXES = {"torch": ".pt2", "onnx": ".onnx"}
CARD_SUFFIX = ".json"
ONNX_PACKAGES = ("onnx", "onnxscript")


@dataclass(frozen=True)
class ModelCard:
    """What a user of the exported file must know; written beside it as JSON."""

    classes: Sequence[str]
    view: View
    protocol: str
    threshold: float
    origin: Mapping[str, Any]
    cut: float | None = None  # of a head that cuts its raw map itself

    def to_json(self, file: str) -> dict[str, Any]:
        side, resized = self.view.side, self.view.resized
        crop = "" if resized == side else f", then the centre {side} x {side}"
        use = "normalised" if self.cut is None else f"cut: the object is where it is above {self.cut:g}"
        return {
            "file": file,
            "input": {
                "name": "images",
                "dtype": "uint8",
                "shape": ["batch", 3, side, side],
                "meaning": "RGB, 0 to 255, not normalised: the file does that",
                "prepared_by": f"the whole image to {resized} x {resized}, antialiased bilinear{crop}",
            },
            "outputs": {
                "logits": "float32 (batch, classes); softmax gives the scores",
                "maps": f"float32 (batch, classes, h, w): raw class maps, to be resized and {use}",
            },
            "classes": list(self.classes),
            "protocol": self.protocol,
            "threshold": self.threshold,
            **self.origin,
        }


class Exported(nn.Module):
    """The localizer with plain tensors in and out: what both formats hold."""

    def __init__(self, localizer: Localizer, classes: int) -> None:
        super().__init__()
        self.localizer = localizer
        self.register_buffer("labels", torch.arange(classes)[None], persistent=False)
        self.labels: Tensor

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        output = self.localizer(images)
        labels = self.labels.expand(images.shape[0], -1)
        return output.logits, self.localizer.maps_for(output, labels)


def card_of(out: Path) -> Path:
    """The card beside an exported model."""
    return out.with_suffix(CARD_SUFFIX)


def export(localizer: Localizer, format: str, out: Path, card: ModelCard, overwrite: bool = False) -> Path:
    """Write the localizer to `out` and its card beside it; returns the path of the card.

    Raises:
        ConfigError: the model cannot be written in this format.
        RunFolderError: the file exists, cannot be written, or has the name of its card.
    """
    card_path = card_of(out)
    if card_path == out:
        raise RunFolderError(
            f"{out}: a file that ends in {CARD_SUFFIX} is the card beside the model; "
            f"name the model {out.with_suffix(SUFFIXES[format]).name}"
        )
    for path in (out, card_path):
        if path.exists() and not overwrite:
            raise RunFolderError(f"{path}: already exists; choose another --out or allow it with --overwrite")
    if format == "onnx":
        require_onnx_packages()
    model = Exported(localizer.eval().cpu(), len(card.classes)).eval()
    example = torch.zeros(2, 3, card.view.side, card.view.side, dtype=torch.uint8)
    content = {"torch": _torch_program, "onnx": _onnx_graph}[format](model, example)
    write_atomically(out, content, parents=True)
    write_json(card_path, card.to_json(out.name))
    return card_path


def require_onnx_packages() -> None:
    """Raise where the packages that write ONNX are missing."""
    missing = [name for name in ONNX_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise WsolError(f"ONNX needs {' and '.join(missing)}: pip install 'wsol[onnx]'")


def _torch_program(model: nn.Module, example: Tensor) -> bytes:
    buffer = io.BytesIO()
    torch.export.save(_trace(model, example), buffer)
    return buffer.getvalue()


def _onnx_graph(model: nn.Module, example: Tensor) -> bytes:
    from wsol.models.onnx_linear_algebra import TRANSLATIONS

    with _quiet():
        try:
            program = torch.onnx.export(
                _trace(model, example),
                dynamo=True,
                input_names=["images"],
                output_names=["logits", "maps"],
                custom_translation_table=TRANSLATIONS,
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            raise ConfigError(
                f"this model cannot be written as ONNX ({_innermost(error)}); export it with --format torch"
            ) from error
        assert program is not None
        proto = program.model_proto
        _forget_sources(proto.graph)
        graph: bytes = proto.SerializeToString()
        return graph


def _forget_sources(graph: Any) -> None:
    """Remove what the exporter notes of every node: lines of this code, with the paths of this machine."""
    for value in (*graph.node, *graph.value_info, *graph.input, *graph.output):
        value.ClearField("metadata_props")
        value.ClearField("doc_string")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _forget_sources(attribute.g)


def _innermost(error: BaseException) -> str:
    """The first line of what went wrong at the bottom of a chain of errors."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).partition("\n")[0].partition(" Failure message")[0].rstrip(".")


def _trace(model: nn.Module, example: Tensor) -> torch.export.ExportedProgram:
    with torch.no_grad(), _quiet():
        # strict: the bytecode is traced, where `len(tensor)` stays a free size
        return torch.export.export(
            model, (example,), dynamic_shapes={"images": {0: torch.export.Dim("batch")}}, strict=True
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporters' progress lines and advice on their own workings."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
