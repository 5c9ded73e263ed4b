"""A small Hugging Face Hub on 127.0.0.1, with what huggingface_hub asks for to push and to load."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Files = dict[str, bytes]


class FakeHub:
    """Repositories in memory: for each name its states, the newest last. Only `token` may write."""

    token = "hf_fake"

    def __init__(self) -> None:
        self.repositories: dict[str, list[Files]] = {}
        self.endpoint = ""
        self.asked: list[str] = []

    def revision(self, name: str, revision: str) -> tuple[str, Files] | None:
        """(commit, files) of `main` or of a commit."""
        for number, files in reversed(list(enumerate(self.repositories.get(name, [])))):
            commit = hashlib.sha1(f"{name} {number}".encode()).hexdigest()
            if revision in ("main", commit):
                return commit, files
        return None

    def put(self, name: str, **changed: bytes | None) -> None:
        """A new state with these files changed; `None` removes one. `_` stands for the dot of a name."""
        files = dict(self.repositories[name][-1])
        for key, content in changed.items():
            path = key.replace("_", ".")
            if content is None:
                del files[path]
            else:
                files[path] = content
        self.repositories[name].append(files)


@contextmanager
def running_hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append(f"{self.command} {path}")
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?", path):
            name, what, revision = found[1], found[2], found[3] or "main"
            state = self._state(name, revision)
            if state is None:
                return
            commit, files = state
            if what == "tree":
                self._json(
                    [
                        {
                            "type": "file",
                            "path": file,
                            "size": len(content),
                            "oid": hashlib.sha1(content).hexdigest(),
                        }
                        for file, content in files.items()
                    ]
                )
            else:
                siblings = [{"rfilename": file} for file in files]
                self._json(
                    {"id": name, "modelId": name, "sha": commit, "siblings": siblings, "private": False}
                )
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            state = self._state(found[1], found[2])
            if state is None:
                return
            commit, files = state
            content = files.get(found[3])
            if content is None:
                self._fail(404, "EntryNotFound")
                return
            etag = f'"{hashlib.sha1(content).hexdigest()}"'
            self._answer(200, content, {"ETag": etag, "X-Repo-Commit": commit})
        else:
            self._fail(404)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append(f"{self.command} {path}")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != f"Bearer {self.hub.token}":
            self._fail(401)
        elif path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            if name in self.hub.repositories:
                self._json({"url": f"{self.hub.endpoint}/{name}"}, 409)
                return
            self.hub.repositories[name] = [{".gitattributes": b"*.safetensors filter=lfs\n"}]
            self._json({"url": f"{self.hub.endpoint}/{name}", "name": name})
        elif path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif re.fullmatch(r"/api/models/[^/]+/[^/]+/preupload/main", path):
            files = json.loads(body)["files"]
            plain = [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]
            self._json({"files": plain})
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/main", path):
            self._commit(found[1], [json.loads(line) for line in body.splitlines()])
        else:
            self._fail(404)

    def _commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        files = dict(self.hub.repositories[name][-1])
        for line in lines:
            if line["key"] == "deletedFile":
                files.pop(line["value"]["path"], None)
            elif line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        self.hub.repositories[name].append(files)
        found = self.hub.revision(name, "main")
        assert found is not None
        self._json({"commitUrl": f"{self.hub.endpoint}/{name}/commit/{found[0]}", "commitOid": found[0]})

    def _state(self, name: str, revision: str) -> tuple[str, Files] | None:
        if name not in self.hub.repositories:
            self._fail(404, "RepoNotFound")
            return None
        state = self.hub.revision(name, revision)
        if state is None:
            self._fail(404, "RevisionNotFound")
        return state

    def _json(self, record: Any, status: int = 200) -> None:
        self._answer(status, json.dumps(record).encode(), {"Content-Type": "application/json"})

    def _fail(self, status: int, code: str = "") -> None:
        self._answer(status, b"{}", {"X-Error-Code": code} if code else {})

    def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
