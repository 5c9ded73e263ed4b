"""A served classifier that answers in a moment, and a client for it."""

from __future__ import annotations

import http.client
import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

import wsol
from tests.helpers.classifiers import SmallNet, seeded
from wsol.localization.classifier_finder import ClassifierFinder
from wsol.serving.server import PhotoServer

Ask = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="session")
def finder() -> ClassifierFinder:
    return wsol.from_classifier(
        seeded(SmallNet),
        "gradcam",
        classes=["ant", "bee", "cat", "dog", "eel"],
        image_size=32,
        threshold=0.335,
    )


@pytest.fixture(scope="session")
def server(finder: ClassifierFinder) -> Iterator[PhotoServer]:
    with wsol.serve(finder, port=0) as started:
        yield started


@pytest.fixture(scope="session")
def ask(server: PhotoServer) -> Ask:
    """Send a request: (status, the JSON of the answer or its bytes)."""

    def send(
        method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(urlsplit(server.address).netloc, timeout=60)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            content = response.read()
            is_json = response.headers["Content-Type"] == "application/json"
            return response.status, json.loads(content) if is_json else content
        finally:
            connection.close()

    return send


def noise(width: int = 60, height: int = 40, seed: int = 0) -> np.ndarray:
    """A picture with large patches, so that maps differ from place to place."""
    small = np.random.default_rng(seed).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


def encoded(kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(noise()).save(file, kind, **options)
    return file.getvalue()
