"""One client: requests of HTTP in, answers out.

| request | what it answers |
|---|---|
| GET /, /serve.css, /serve.js | the page |
| GET /example?number=N | the file of an example |
| POST /picture | the photo in the body, upright and small, and its true size |
| POST /find?model=N&method=NAME&label=N | a class in the photo in the body: heat, box at every threshold |
| POST /boxes | the boxes in the body as a file: JSON, CSV or COCO |

Every refusal is one line of JSON, `{"error": "..."}`. Nothing is kept: what a request brings is forgotten
with its answer, and no file is written.
"""

from __future__ import annotations

import logging
import select
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from numpy.typing import NDArray

from wsol.data.image import decode_image
from wsol.data.photos import quiet_decoder
from wsol.errors import WsolError
from wsol.serving.answers import Answer, Refused, boxes_file, findings_of, picture_of
from wsol.serving.examples import Example
from wsol.serving.limits import (
    BODY_SECONDS,
    LARGEST_PIXELS,
    LARGEST_RECORD,
    LARGEST_UPLOAD,
    SILENT_SECONDS,
)
from wsol.serving.page import POLICY
from wsol.serving.served_model import ServedModel
from wsol.serving.workers import ClientGone, Workers

T = TypeVar("T")

LOG = logging.getLogger(__name__)
OWN_NAMES = ("127.0.0.1", "localhost")
DISCARD_SECONDS = 5  # for what is read only to be thrown away
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Site:
    """What is served. files: of the page, by their path."""

    models: tuple[ServedModel, ...]
    examples: tuple[Example, ...]
    files: Mapping[str, Answer]
    workers: Workers


class PhotoHandler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "wsol", ""
    timeout = SILENT_SECONDS

    def __init__(self, site: Site, *args: Any) -> None:
        self._site = site
        self._unread = 0  # bytes of the body that the client has yet to send
        super().__init__(*args)

    def do_GET(self) -> None:
        self._respond(self._get)

    def do_POST(self) -> None:
        self._respond(self._post)

    # ---- what is asked for ---------------------------------------------------------------------------------

    def _get(self, path: str, options: Mapping[str, str]) -> Answer:
        if path in self._site.files:
            return self._site.files[path]
        if path == "/example":
            example = self._site.examples[_index(options.get("number"), len(self._site.examples), "example")]
            return Answer(example.content, "application/octet-stream")
        raise Refused(404, "no such address")

    def _post(self, path: str, options: Mapping[str, str]) -> Answer:
        if path == "/picture":
            return Answer.of(self._with_photo(picture_of))
        if path == "/find":
            return self._find(options)
        if path == "/boxes":
            request = self._body(LARGEST_RECORD)
            text = self._site.workers.look(lambda: boxes_file(self._site.models, request), self._is_gone)
            return Answer(text.encode(errors="backslashreplace"), "text/plain; charset=utf-8")
        raise Refused(404, "no such address")

    def _find(self, options: Mapping[str, str]) -> Answer:
        models = self._site.models
        model = models[_index(options.get("model"), len(models), "model")]
        method = options.get("method", model.method)
        if method not in model.methods:
            raise Refused(400, "no such method")
        label = None
        if "label" in options:
            label = _index(options["label"], len(model.finder.classes), "class")
        view = model.finder.view
        square, size = self._with_photo(lambda image: (view.apply(image), (image.shape[1], image.shape[0])))

        def look() -> Answer:
            found = model.by(method).at_thresholds(square, size, model.thresholds, label)
            return Answer.of(findings_of(found, size))

        return self._site.workers.look(look, self._is_gone)

    def _with_photo(self, work: Callable[[NDArray[np.uint8]], T]) -> T:
        """What `work` makes of the photo in the body. Only meanwhile its pixels are in memory."""
        workers = self._site.workers
        with workers.upload():
            content = self._body(LARGEST_UPLOAD)

            def decode_and_work() -> T:
                with quiet_decoder():
                    return work(decode_image(content, LARGEST_PIXELS))

            return workers.decode(decode_and_work, self._is_gone)

    # ---- HTTP ----------------------------------------------------------------------------------------------

    def _respond(self, answer: Callable[[str, Mapping[str, str]], Answer]) -> None:
        """Answer the request; whatever goes wrong with it is one line, and the server goes on."""
        self._unread = 0
        try:
            self._unread = self._announced()
            address = self._address()
            reply = answer(address.path, dict(parse_qsl(address.query)))
        except Refused as refused:
            reply = Answer.error(refused.status, str(refused))
        except WsolError as error:
            reply = Answer.error(422, str(error))
        except TimeoutError:
            reply = Answer.error(503, "this took too long; try again")
            self.close_connection = True
        except (ClientGone, ConnectionError):
            self.close_connection = True
            return
        except MemoryError:
            reply = Answer.error(503, "not enough memory for this photo")
        except Exception as error:
            LOG.exception("%s %s", self.command, self.path)
            reply = Answer.error(500, f"an error inside wsol: {type(error).__name__}: {error}")
        if self._unread:
            self._discard()
        self._send(reply)

    def _address(self) -> Any:
        """The address, from a page of this server alone.

        A web site that the user visits may send requests here too, from its own page or, with a name that it
        points to this machine, from an address that looks like ours. Browsers tell both in these headers.
        """
        hosts = self.headers.get_all("Host", [])
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        try:
            address = urlsplit(self.path)
            name = urlsplit(f"//{hosts[0]}").hostname if len(hosts) == 1 else None
        except ValueError:
            raise Refused(400, "no such address") from None
        if name not in OWN_NAMES:
            raise Refused(403, f"this server is called {' or '.join(OWN_NAMES)}")
        foreign = origin is not None and origin != f"http://{hosts[0]}"
        if foreign or (site not in ("same-origin", "none") and address.path != "/"):
            raise Refused(403, "requests from other web sites are refused")
        return address

    def _announced(self) -> int:
        """How many bytes the body has."""
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise Refused(411, "send the length of the file (Content-Length)")
        lengths = self.headers.get_all("Content-Length", ["0"])
        if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) < 16):
            self.close_connection = True
            raise Refused(400, "Content-Length is no number")
        return int(lengths[0])

    def _body(self, largest: int) -> bytearray:
        """The body of the request."""
        if self._unread > largest:
            raise Refused(413, f"larger than {largest // 2**20} MB; choose a smaller file")
        content = bytearray(self._unread)
        view, end = memoryview(content), time.monotonic() + BODY_SECONDS
        while self._unread:
            got = self.rfile.readinto1(view[len(content) - self._unread :])
            if not got:
                raise ClientGone
            self._unread -= got
            if time.monotonic() > end:
                raise TimeoutError
        return content

    def _discard(self) -> None:
        """Read what the client still sends, since it reads our answer only afterwards; then part from it."""
        self.close_connection = True
        end = time.monotonic() + DISCARD_SECONDS
        try:
            while self._unread > 0 and time.monotonic() < end:
                got = self.rfile.read1(min(self._unread, 1 << 16))
                if not got:
                    return
                self._unread -= len(got)
        except OSError:
            return

    def _send(self, answer: Answer) -> None:
        try:
            self.send_response(answer.status)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(answer.body)
        except OSError:  # the client went away
            self.close_connection = True

    def _is_gone(self) -> bool:
        """Whether the client has closed the connection."""
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        try:
            return bool(poll.poll(0)) and not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def handle_expect_100(self) -> bool:
        """Clients that ask before they send a large file are told at once that it is too large."""
        length = self.headers.get("Content-Length", "")
        if length.isascii() and length.isdigit() and len(length) < 16 and int(length) > LARGEST_UPLOAD:
            self.send_error(413, f"larger than {LARGEST_UPLOAD // 2**20} MB; choose a smaller file")
            return False
        return super().handle_expect_100()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The errors of the base class, in our form: one line, not a page."""
        self.close_connection = True
        self._send(Answer.error(code, message or HTTPStatus(code).phrase))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a server that keeps nothing keeps no list of requests."""


def _index(text: str | None, end: int, what: str) -> int:
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) >= end:
        raise Refused(400, f"no such {what}")
    return int(text)
