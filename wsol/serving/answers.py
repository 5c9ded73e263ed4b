"""What the server answers: pictures, findings and files of boxes."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from wsol.drawing.colours import heat_table, to_levels
from wsol.errors import ConfigError
from wsol.localization.localized import ClassAtThresholds, Finding
from wsol.records import Box
from wsol.runs.files import json_text
from wsol.serving.limits import PICTURE_SIDE
from wsol.serving.served_model import ServedModel
from wsol.views.box_formats import BOX_FILES, PhotoBoxes


class Refused(Exception):
    """A request that is not done: the status of HTTP, and why in one line."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Answer:
    """status: of HTTP. kind: the media type of the body."""

    body: bytes
    kind: str = "application/json"
    status: int = 200

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Answer:
        return cls(json_text(record).encode())

    @classmethod
    def error(cls, status: int, reason: str) -> Answer:
        """One line that says why there is nothing else."""
        line = " ".join(reason.split())
        return cls(json.dumps({"error": line}).encode() + b"\n", status=status)


def picture_of(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    """The photo as the decoder read it, small enough for a page, and its true size."""
    return {
        "width": pixels.shape[1],
        "height": pixels.shape[0],
        "picture": jpeg_url(pixels, PICTURE_SIDE),
    }


def findings_of(found: ClassAtThresholds, size: tuple[int, int]) -> dict[str, Any]:
    """Where a class is at every threshold. Numbers keep all of their digits."""
    return {
        "width": size[0],
        "height": size[1],
        "label": found.label,
        "score": found.score,
        "ranking": found.ranking,
        "boxes": [[*box, empty] for box, empty in found.boxes],
        "heat": heat_url(found.heat),
        "region": found.region,
    }


def boxes_file(models: Sequence[ServedModel], request: bytes | bytearray) -> str:
    """The text of a file of boxes.

    request: JSON with the model's number, its method, the threshold, the name of the file among BOX_FILES,
    and the photos with one box each, as the page shows them.
    """
    try:
        asked = json.loads(request)
        model = models[_number(asked["model"], len(models))]
        make, method = BOX_FILES[asked["file"]], model.methods.index(asked["method"])
        finder = model.by(model.methods[method])
        threshold = float(asked["threshold"])
        found = _photos(asked["photos"], finder.classes)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, ConfigError):
        raise Refused(400, "not the boxes of this page; load the page anew") from None
    settings = {"run": finder.described or model.name, "protocol": finder.protocol, "threshold": threshold}
    return make(found, finder.classes, settings, {})


def _photos(given: Sequence[Mapping[str, Any]], classes: Sequence[str]) -> dict[str, PhotoBoxes]:
    found: dict[str, PhotoBoxes] = {}
    for one in given:
        label = _number(one["label"], len(classes))
        x0, y0, x1, y1 = (float(v) for v in one["box"])
        finding = Finding(
            label, classes[label], float(one["score"]), Box(x0, y0, x1, y1), bool(one["no_foreground"])
        )
        found[str(one["file"])] = (int(one["width"]), int(one["height"])), [finding]
    return found


def _number(value: Any, end: int) -> int:
    """A whole number from 0 to end - 1; ValueError for anything else."""
    number = int(value)
    if not 0 <= number < end:
        raise ValueError(value)
    return number


def jpeg_url(pixels: NDArray[np.uint8], side: int) -> str:
    """A picture of at most this side, as an address that holds it."""
    image = Image.fromarray(pixels)
    image.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=3.0)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=90)
    return _url(file, "jpeg")


def heat_url(heat: NDArray[np.floating]) -> str:
    """The heat in its colours, transparent where it is cold."""
    file = io.BytesIO()
    Image.fromarray(heat_table()[to_levels(heat)]).save(file, "PNG", compress_level=1)
    return _url(file, "png")


def _url(file: io.BytesIO, kind: str) -> str:
    return f"data:image/{kind};base64," + base64.b64encode(file.getvalue()).decode()
