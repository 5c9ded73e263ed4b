"""What the server answers is what Python finds, to the last digit."""

from __future__ import annotations

import base64
import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import wsol
from tests.wsol.serving.conftest import Ask, encoded, noise
from wsol.localization.classifier_finder import ClassifierFinder
from wsol.serving.answers import Refused, boxes_file
from wsol.serving.served_model import ServedModel
from wsol.views.box_formats import BOX_FILES


def opened(url: str) -> Image.Image:
    """The picture that an address holds."""
    head, _, content = url.partition(",")
    assert head.startswith("data:image/")
    return Image.open(io.BytesIO(base64.b64decode(content)))


@pytest.mark.parametrize("method", ["cam", "gradcam", "layercam"])
@pytest.mark.parametrize("label", [None, 3])
def test_every_box_is_that_of_the_finder(
    ask: Ask, finder: ClassifierFinder, method: str, label: int | None
) -> None:
    query = f"model=0&method={method}" + ("" if label is None else f"&label={label}")
    status, found = ask("POST", f"/find?{query}", encoded())
    assert status == 200
    served = ServedModel("small", finder)
    assert len(found["boxes"]) == len(served.thresholds) == 101  # the steps and the finder's own threshold
    by_python = finder.with_method(method)
    name = None if label is None else finder.classes[label]
    for threshold, (*box, empty) in zip(served.thresholds, found["boxes"], strict=True):
        expected = replace(by_python, threshold=float(threshold))(noise(), class_name=name)
        assert box == list(expected.box)
        assert empty == expected.best.empty
    assert (found["label"], found["score"]) == (expected.label, expected.score)
    assert (found["width"], found["height"]) == (60, 40)
    ranked = [[one.label, one.score] for one in by_python(noise()).found]
    np.testing.assert_allclose(found["ranking"], ranked, rtol=1e-6)
    assert opened(found["heat"]).size == (32, 32)
    assert opened(found["heat"]).mode == "RGBA"


def test_the_picture_is_upright_and_tells_its_size(ask: Ask) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned
    status, picture = ask("POST", "/picture", encoded("JPEG", exif=exif))
    assert (status, picture["width"], picture["height"]) == (200, 40, 60)
    assert opened(picture["picture"]).size == (40, 60)


def test_a_large_picture_is_shown_small(ask: Ask) -> None:
    file = io.BytesIO()
    Image.new("L", (3200, 1000)).save(file, "PNG")
    _, picture = ask("POST", "/picture", file.getvalue())
    assert (picture["width"], picture["height"]) == (3200, 1000)
    assert opened(picture["picture"]).size == (1600, 500)


def test_examples_are_photos(ask: Ask) -> None:
    status, content = ask("GET", "/example?number=0")
    assert status == 200
    assert ask("POST", "/picture", content)[0] == 200


def test_a_model_that_cuts_its_map_itself_has_one_threshold(finder: ClassifierFinder) -> None:
    class Cutting:
        cut = 0.4

    served = ServedModel("own cut", replace(finder, localizer=Cutting(), threshold=0.4))  # type: ignore[arg-type]
    assert served.thresholds.tolist() == [0.4]


def record(**changes: Any) -> dict[str, Any]:
    photo = {
        "file": "bird.jpg",
        "width": 60,
        "height": 40,
        "label": 2,
        "score": 0.75,
        "box": [1.5, 2.25, 30.125, 20.0],
        "no_foreground": False,
    }
    whole = {"model": 0, "method": "cam", "threshold": 0.35, "file": "boxes.json", "photos": [photo]}
    return whole | changes


def test_downloads_are_the_files_of_localize(finder: ClassifierFinder, tmp_path: Path) -> None:
    """The same photo by `wsol.localize` and by the page gives the same files, apart from their settings."""
    find = replace(finder, threshold=0.35)
    Image.fromarray(noise()).save(tmp_path / "bird.png")
    wsol.localize(find, tmp_path / "bird.png", tmp_path / "out", topk=1)
    best = find(noise())
    photo = {
        "file": "bird.png",
        "width": 60,
        "height": 40,
        "label": best.label,
        "score": best.score,
        "box": list(best.box),
        "no_foreground": best.best.empty,
    }
    for file in BOX_FILES:
        asked = record(file=file, method="gradcam", photos=[photo])
        text = boxes_file([ServedModel("small", finder)], json.dumps(asked).encode())
        written = (tmp_path / "out" / file).read_text()
        if file.endswith(".csv"):
            assert text == written
        else:
            ours, theirs = json.loads(text), json.loads(written)
            for keys in ("images", "annotations", "categories"):
                assert ours.get(keys) == theirs.get(keys)
    # What the boxes were made with is told.
    text = boxes_file([ServedModel("small", finder)], json.dumps(record()).encode())
    assert json.loads(text)["threshold"] == 0.35
    assert "cam at last" in json.loads(text)["run"]


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=5),
)


@given(st.sampled_from([*record(), *record()["photos"][0]]), VALUES)
def test_records_that_are_none_are_refused(finder: ClassifierFinder, key: str, value: Any) -> None:
    asked = record()
    (asked if key in asked and key != "file" else asked["photos"][0])[key] = value
    with contextlib.suppress(Refused):  # and nothing else
        json.loads(boxes_file([ServedModel("small", finder)], json.dumps(asked).encode()))


@pytest.mark.parametrize("request_", [b"", b"[]", b"{}", b"null", b"[" * 100_000, b"\xff"])
def test_what_is_no_record_is_refused(finder: ClassifierFinder, request_: bytes) -> None:
    with pytest.raises(Refused):
        boxes_file([ServedModel("small", finder)], request_)


def test_a_method_that_does_not_fit_is_told(ask: Ask) -> None:
    status, answer = ask("POST", "/find?model=0&method=rollout", encoded())
    assert status == 422
    assert "transformer" in answer["error"]
