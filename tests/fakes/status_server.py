# SPDX-License-Identifier: Apache-2.0
"""An OpenSandbox that answers every call with one HTTP status: its service, or only its daemons.
Each frontend's table of failures is compared with what comes of that."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any

STATUSES = [400, 401, 403, 404, 405, 408, 409, 410, 413, 416, 422, 429, 500, 501, 502, 503, 504]
ID = "4f9a6a63-1a2b-4c3d-8e4f-0123456789ab"


class StatusServer:
    """An OpenSandbox and its daemon. `status` is what the failing one of the two answers."""

    def __init__(self) -> None:
        self.status = 500
        self.daemon_fails = False
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, body = outer.answer(self.path.split("?")[0])
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> tuple[int, Any]:
        failure = {"code": "SERVER::FAILED", "message": "as the test says"}
        if not path.startswith("/v1/") or not self.daemon_fails:
            return self.status, failure
        if "/endpoints/" in path:
            return 200, {"endpoint": self.address, "headers": {}}
        return 200, {
            "id": ID,
            "image": {"uri": "python:3.12-slim"},
            "status": {"state": "Running", "reason": "", "message": ""},
            "metadata": {},
            "entrypoint": ["tail", "-f", "/dev/null"],
            "createdAt": "2026-01-01T00:00:00Z",
            "expiresAt": "2036-01-01T00:00:00Z",
        }

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
