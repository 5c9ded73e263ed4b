"""Bad input: one line as the answer, and the server goes on."""

from __future__ import annotations

import http.client
import io
import json
import socket
import struct
import tempfile
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import wsol
from tests.wsol.serving.conftest import Ask, encoded
from wsol.errors import ConfigError, DataError, RunFolderError
from wsol.localization.classifier_finder import ClassifierFinder
from wsol.serving.limits import LARGEST_UPLOAD, UPLOADS_AT_ONCE
from wsol.serving.server import PhotoServer
from wsol.serving.workers import ClientGone, Workers


def png_header(width: int, height: int, content: bytes = b"") -> bytes:
    """A PNG that announces so many pixels, whatever its content holds."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(content))
        + chunk(b"IEND", b"")
    )


def one_bit(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("1", (width, height)).save(file, "PNG")
    return file.getvalue()


def floats() -> bytes:
    file = io.BytesIO()
    Image.new("F", (4, 4)).save(file, "TIFF")
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"<html><script>alert(1)</script></html>", "not an image"),
        (b"%!PS-Adobe-3.0\n", "not an image"),
        (encoded("JPEG")[:400], "damaged image"),
        (encoded("PNG")[:-40], "damaged image"),
        (one_bit(10_000, 10_000), "10000 x 10000 pixels are too many; at most 64 megapixels"),
        (png_header(60_000, 60_000), "too many pixels"),
        (png_header(7_000, 7_000, bytes(10_000)), "damaged image"),
        (floats(), "floating point pixels"),
    ],
    ids=["empty", "html", "postscript", "cut jpeg", "cut png", "100 megapixels", "bomb", "lie", "floats"],
)
@pytest.mark.parametrize("path", ["/picture", "/find?model=0"])
def test_what_is_no_photo_is_refused(ask: Ask, content: bytes, reason: str, path: str) -> None:
    status, answer = ask("POST", path, content)
    assert status == 422
    assert answer["error"].startswith(reason)
    assert "\n" not in answer["error"]
    assert ask("POST", path, encoded())[0] == 200


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/find", "no such model"),
        ("/find?model=1", "no such model"),
        ("/find?model=-1", "no such model"),
        ("/find?model=" + "9" * 5000, "no such model"),
        ("/find?model=%C2%B2", "no such model"),
        ("/find?model=0&label=5", "no such class"),
        ("/find?model=0&label=x", "no such class"),
        ("/find?model=0&method=none", "no such method"),
        ("/lost", "no such address"),
        ("//[", "no such address"),
    ],
)
def test_what_is_not_there_is_told(ask: Ask, path: str, reason: str) -> None:
    status, answer = ask("POST", path, encoded())
    assert status in (400, 404)
    assert answer == {"error": reason}
    for missing in ("/example?number=99", "/../../etc/passwd", "/serve.py"):
        assert ask("GET", missing)[0] in (400, 404)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "[::1"}, 400),
        ({"Host": ""}, 403),
        ({"Host": "localhost:9"}, 200),  # as through an SSH tunnel
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:1", "Host": "localhost:2"}, 403),
        ({"Origin": "http://localhost:2", "Host": "localhost:2"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_other_web_sites_are_refused(ask: Ask, headers: dict[str, str], status: int) -> None:
    assert ask("POST", "/picture", encoded(), headers)[0] == status
    assert ask("GET", "/serve.js", None, headers)[0] == status


def test_the_page_loads_nothing_from_outside(ask: Ask, server: PhotoServer) -> None:
    for path in ("/", "/serve.css", "/serve.js"):
        status, content = ask("GET", path)
        assert status == 200
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text
        assert "https:" not in text
        assert "@import" not in text
    connection = http.client.HTTPConnection(urlsplit(server.address).netloc)
    connection.request("GET", "/")
    headers = connection.getresponse().headers
    connection.close()
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert "Python" not in headers["Server"]


def raw(server: PhotoServer, request: bytes) -> bytes:
    """All that the server answers to these bytes."""
    with socket.create_connection(
        ("127.0.0.1", int(urlsplit(server.address).port or 0)), timeout=30
    ) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while part := client.recv(1 << 16):
                answer += part
        except ConnectionResetError:
            pass
        return answer


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Content-Length: %d" % (LARGEST_UPLOAD + 1), b"413"),
        (b"Content-Length: %d\r\nExpect: 100-continue" % (LARGEST_UPLOAD + 1), b"413"),
        (b"Content-Length: 99999999999999999999", b"400"),
        (b"Content-Length: -5", b"400"),
        (b"Content-Length: five", b"400"),
        (b"Content-Length: 5\r\nContent-Length: 6", b"400"),
        (b"Transfer-Encoding: chunked", b"411"),
    ],
)
def test_lengths_that_are_wrong_are_refused(server: PhotoServer, head: bytes, status: bytes) -> None:
    answer = raw(server, b"POST /picture HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\nhello")
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"Connection: close" in answer
    assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["error"].splitlines()) == 1


@given(st.binary(max_size=300))
@settings(max_examples=30)
def test_bytes_that_are_no_request_end_nothing(server: PhotoServer, ask: Ask, garbage: bytes) -> None:
    for request in (
        garbage,
        b"GET " + garbage,
        b"POST /find?model=0 HTTP/1.1\r\nHost: localhost\r\n" + garbage,
    ):
        answer = raw(server, request)
        assert b"Traceback" not in answer
        assert b" 500 " not in answer[:20]
    assert ask("GET", "/serve.css")[0] == 200


@given(st.sampled_from(["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM"]), st.data())
@settings(max_examples=60)
def test_damaged_photos_are_answered(ask: Ask, kind: str, data: st.DataObject) -> None:
    """Changed bytes give a picture or a refusal, never an error inside."""
    content = bytearray(encoded(kind))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    status, answer = ask("POST", "/find?model=0", bytes(content[: data.draw(st.integers(0, len(content)))]))
    assert status in (200, 422), answer
    assert status == 200 or "\n" not in answer["error"]


def test_ten_clients_at_once_get_the_same(ask: Ask) -> None:
    _, alone = ask("POST", "/find?model=0", encoded())
    with ThreadPoolExecutor(10) as clients:
        answers = list(clients.map(lambda _: ask("POST", "/find?model=0", encoded()), range(30)))
    assert all(answer == (200, alone) for answer in answers)


@pytest.mark.parametrize("part", [0, 0.5, 1])
def test_clients_that_go_away_leave_no_place_taken(server: PhotoServer, ask: Ask, part: float) -> None:
    body = encoded()
    for _ in range(2 * UPLOADS_AT_ONCE):
        with socket.create_connection(("127.0.0.1", int(urlsplit(server.address).port or 0))) as client:
            head = b"POST /find?model=0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
            client.sendall(head + body[: int(part * len(body))])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
    assert ask("POST", "/find?model=0", body)[0] == 200


def test_work_for_clients_that_are_gone_is_not_done() -> None:
    workers, done = Workers(), []
    with pytest.raises(ClientGone):
        workers.look(lambda: done.append(1), lambda: True)
    with pytest.raises(ClientGone):
        workers.decode(lambda: done.append(1), lambda: True)
    workers.look(lambda: done.append(2), lambda: False)
    workers.close()
    assert done == [2]


def test_one_photo_at_a_time() -> None:
    workers, now, most = Workers(), 0, 0
    lock = threading.Lock()

    def job() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(lambda _: workers.look(job, lambda: False), range(8)))
        list(clients.map(lambda _: workers.decode(job, lambda: False), range(8)))
    workers.close()
    assert most == 1


def test_files_in_memory_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsol.serving.workers.TURN_SECONDS", 0.05)
    workers = Workers()
    places = [workers.upload() for _ in range(UPLOADS_AT_ONCE)]
    for place in places:
        place.__enter__()
    with pytest.raises(TimeoutError), workers.upload():
        pass
    places[0].__exit__(None, None, None)
    with workers.upload():
        pass
    workers.close()


def test_nothing_is_written(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for path in ("/picture", "/find?model=0"):
        assert ask("POST", path, encoded())[0] == 200
        assert ask("POST", path, b"no photo")[0] == 422
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_told_before_models_are_opened(server: PhotoServer) -> None:
    port = urlsplit(server.address).port
    assert port is not None
    with pytest.raises(ConfigError, match=f"port {port}: taken by another program"):
        wsol.serve("runs/none", port=port)
    with pytest.raises(ConfigError, match="from 0 to 65535"):
        wsol.serve("runs/none", port=65536)
    with pytest.raises(ConfigError, match="at least one"):
        wsol.serve([], port=0)


def test_a_closed_server_gives_its_port_back(finder: ClassifierFinder, tmp_path: Path) -> None:
    photo = tmp_path / "photo.png"
    photo.write_bytes(encoded())
    with wsol.serve([finder, finder], port=0, examples=[photo]) as first:
        port = urlsplit(first.address).port
        assert port
    wsol.serve(finder, port=port, examples=[tmp_path]).close()
    with pytest.raises(RunFolderError):
        wsol.serve(tmp_path / "none", port=port)
    photo.write_bytes(b"no photo")
    with pytest.raises(DataError, match="not an image"):
        wsol.serve(finder, port=port, examples=[tmp_path])
    with pytest.raises(DataError, match="no such"):
        wsol.serve(finder, port=port, examples=[tmp_path / "lost.jpg"])
