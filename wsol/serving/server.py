"""The server: a listener on this machine's own address, and a thread that runs it."""

from __future__ import annotations

import errno
import logging
import sys
import threading
from collections.abc import Sequence
from functools import partial
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any

from wsol.errors import ConfigError
from wsol.serving.examples import Example
from wsol.serving.handler import PhotoHandler, Site
from wsol.serving.page import page_files
from wsol.serving.served_model import ServedModel
from wsol.serving.workers import Workers

HOST = "127.0.0.1"
LOG = logging.getLogger(__name__)


class PhotoServer:
    """A page where one drops photos, served on 127.0.0.1 from a thread of its own until `close`.

    The port is taken at once, and requests are answered from `start` on: models take long to open, and a port
    that is taken should be told before. With `with`, it is closed at the end of the block.
    port: 0 for one that is free.
    """

    def __init__(self, port: int) -> None:
        if not 0 <= port <= 65535:
            raise ConfigError(f"port {port}: expected a number from 0 to 65535")
        try:
            self._listener = _Listener((HOST, port), PhotoHandler)
        except OSError as error:
            reason = "taken by another program" if error.errno == errno.EADDRINUSE else error.strerror
            raise ConfigError(f"port {port}: {reason}; choose another one (0: any that is free)") from None
        self._workers = Workers()
        self._thread: threading.Thread | None = None

    def start(self, models: Sequence[ServedModel], examples: Sequence[Example]) -> None:
        """Answer requests from now on."""
        site = Site(tuple(models), tuple(examples), page_files(models, examples), self._workers)
        self._listener.RequestHandlerClass = partial(PhotoHandler, site)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, args=(0.2,), name="wsol-serve", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """What to open in a browser on this machine."""
        return f"http://{HOST}:{self._listener.server_address[1]}/"

    def wait(self) -> None:
        """Return when the server is closed."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Answer no more requests, and free the port."""
        if self._thread is not None:
            self._listener.shutdown()
        self._listener.server_close()
        self._workers.close()

    def __enter__(self) -> PhotoServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Listener(ThreadingHTTPServer):
    """A thread for each connection, ended with the program."""

    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error; what else a thread did not catch is told once."""
        if not isinstance(sys.exception(), OSError):
            LOG.exception("a connection ended with an error")
