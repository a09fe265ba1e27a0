# SPDX-License-Identifier: Apache-2.0
"""A relay between a bridge and its OpenSandbox server that remembers what went through, for
comparing two servers by the answers that the same bridge got for the same calls."""

from __future__ import annotations

import http.client
import http.server
import json
import re
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

# Of an answer; the rest is the business of the HTTP server that each has.
_HEADERS = ("content-type", "location", "retry-after", "www-authenticate")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_NONCE = re.compile(r"[0-9a-f]{32}")
_EPOCH = re.compile(r"expires=\d+")
_PLACE = re.compile(r"127\.0\.0\.1:\d+")


@dataclass(frozen=True)
class Exchange:
    """One request and its answer, without what differs from run to run."""

    request: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: str

    def __str__(self) -> str:
        return f"{self.request} -> {self.status} {dict(self.headers)} {self.body}"


class Relay:
    """`url` leads to the server at `upstream`; `exchanges` is what went through."""

    def __init__(self, upstream: str) -> None:
        self.exchanges: list[Exchange] = []
        self._upstream = urlsplit(upstream).netloc
        self._lock = threading.Lock()
        relay = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def _pass_on(self) -> None:
                relay._pass_on(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _pass_on(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        sent = handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
        connection = http.client.HTTPConnection(self._upstream, timeout=60)
        try:
            connection.request(handler.command, handler.path, sent or None, dict(handler.headers))
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        with self._lock:
            self.exchanges.append(Exchange(
                plain(f"{handler.command} {handler.path} {_json(sent)}".strip()), answer.status,
                tuple((name, plain(answer.headers[name])) for name in _HEADERS
                      if name in answer.headers),
                plain(_json(body))))
        handler.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


def plain(text: str) -> str:
    """Without ids, times and places of one run."""
    for pattern, word in ((_UUID, "UUID"), (_TIME, "TIME"), (_NONCE, "NONCE"),
                          (_EPOCH, "expires=EPOCH"), (_PLACE, "PLACE")):
        text = pattern.sub(word, text)
    return text


def _json(body: bytes) -> str:
    """With its keys in order; what is no JSON as it is."""
    try:
        return json.dumps(json.loads(body), sort_keys=True)
    except ValueError:
        return body.decode(errors="backslashreplace")
