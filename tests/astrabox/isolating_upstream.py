# SPDX-License-Identifier: Apache-2.0
"""An OpenSandbox whose daemons have isolated sessions: the local one, and in front of it a server
that hands out itself as every sandbox's daemon and answers /v1/isolated by itself.

The habits are those measured on a real execd with bubblewrap: a session is one bash that reads its
scripts from a pipe; runs wait for each other; blank lines vanish; stderr is merged; "exit" ends the
session, and so does a caller who goes away while a script runs. Nothing is isolated here: the
shells are plain processes, so the local OpenSandbox must run with --isolation=none.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import signal
import subprocess
import threading
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

_END = "__ISOLATED_RUN_END__"
_HOP = {"connection", "transfer-encoding", "content-length", "host", "keep-alive"}


class Session:
    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.name = str(uuid.uuid4())
        self.running = threading.Lock()
        self._rest = b""
        self._shell = subprocess.Popen(  # noqa: S603
            ["bash", "--noprofile", "--norc"],  # noqa: S607
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def status(self) -> str:
        return "active" if self._shell.poll() is None else "dead"

    def state(self) -> dict[str, Any]:
        now = "2026-11-30T06:57:07.225502727Z"
        return self.options | {"status": self.status, "created_at": now, "last_run_at": now}

    def kill(self) -> None:
        """As a namespace's end: with the scripts, which are groups of their own."""
        pid = self._shell.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as children:
                groups = [int(child) for child in children.read().split()]
        except OSError:
            groups = []
        for group in (pid, *groups):
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        self._shell.wait()

    def write(self, code: str) -> bool:
        assert self._shell.stdin is not None
        try:
            self._shell.stdin.write(f"{code}\necho {_END} $?\n".encode())
            self._shell.stdin.flush()
        except OSError:
            return False
        return self.status == "active"

    def line(self, gone: Any) -> str | None:
        """The next line without its end; None at the end of the shell. `gone()`: the caller left,
        which ends the session."""
        assert self._shell.stdout is not None
        pipe = self._shell.stdout.fileno()
        while b"\n" not in self._rest:
            ready, _, _ = select.select([pipe], [], [], 0.05)
            if gone():
                self.kill()
            if not ready:
                continue
            data = os.read(pipe, 65536)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace")


class IsolatingUpstream:
    """`place` is its URL. In front of the OpenSandbox at `upstream`; `daemon`: where all but
    /v1/isolated of a daemon goes, by default the sandbox's own."""

    def __init__(self, upstream: str) -> None:
        self.sessions: dict[str, Session] = {}
        self._daemons: dict[str, str] = {}
        parts = urllib.parse.urlsplit(upstream)
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.path.startswith("/box/"):
                    box, _, rest = self.path[len("/box/") :].partition("/")
                    if rest.startswith("v1/isolated/"):
                        owner._isolated(self, rest[len("v1/isolated/") :], body)
                    else:
                        owner._forward(self, owner._daemons[box], "/" + rest, body)
                else:
                    owner._forward(self, parts.netloc, self.path, body)

            do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _serve  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.place = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for session in self.sessions.values():
            session.kill()
        self._server.shutdown()
        self._server.server_close()

    # --- what is not ours -------------------------------------------------------------------------

    def _forward(self, peer: BaseHTTPRequestHandler, host: str, path: str, body: bytes) -> None:
        way, _, base = host.partition("/")
        connection = http.client.HTTPConnection(way, timeout=60)
        headers = {k: v for k, v in peer.headers.items() if k.lower() not in _HOP}
        try:
            connection.request(peer.command, (f"/{base}" if base else "") + path, body, headers)
            answer = connection.getresponse()
        except OSError:  # a daemon that does not listen yet
            _answer(peer, 502, json.dumps({"code": "BACKEND_CONNECTION_FAILED"}))
            return
        if "/endpoints/44772" in path and answer.status == 200:
            page = json.loads(answer.read())
            box = path.split("/sandboxes/")[1].split("/")[0]
            # The port itself; its own proxy is for others.
            self._daemons[box] = page["endpoint"].removesuffix("/proxy/44772")
            page["endpoint"] = f"127.0.0.1:{self._server.server_port}/box/{box}"
            _answer(peer, 200, json.dumps(page))
            return
        peer.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP:
                peer.send_header(name, value)
        peer.send_header("Connection", "close")
        peer.end_headers()
        while data := answer.read1(65536):
            try:
                peer.wfile.write(data)
                peer.wfile.flush()
            except OSError:
                break
        peer.close_connection = True
        connection.close()

    # --- /v1/isolated -----------------------------------------------------------------------------

    def _isolated(self, peer: BaseHTTPRequestHandler, path: str, body: bytes) -> None:
        if path == "capabilities":
            page: Any = {"available": True, "isolator": "bwrap", "setpriv_available": True}
            return _answer(peer, 200, json.dumps(page))
        if path == "session":
            session = Session(json.loads(body))
            self.sessions[session.name] = session
            made = {"session_id": session.name, "created_at": "2026-11-30T06:57:07.176247612Z"}
            return _answer(peer, 201, json.dumps(made))
        if path == "sessions":
            page = [
                {"session_id": s.name, "status": s.status, "created_at": "2026-11-30T06:57:07Z"}
                for s in self.sessions.values()
            ]
            return _answer(peer, 200, json.dumps({"sessions": page}))
        name, _, rest = path.removeprefix("session/").partition("/")
        found = self.sessions.get(name)
        if found is None:
            missing = {"code": "SESSION_NOT_FOUND", "message": "session not found"}
            return _answer(peer, 404, json.dumps(missing))
        if rest == "run":
            return _run(peer, found, json.loads(body)["code"])
        if peer.command == "DELETE":
            found.kill()
            del self.sessions[name]
            return _answer(peer, 200, "")
        return _answer(peer, 200, json.dumps(found.state()))


def _answer(peer: BaseHTTPRequestHandler, status: int, body: str) -> None:
    peer.send_response(status)
    peer.send_header("Content-Type", "application/json; charset=utf-8")
    peer.send_header("Content-Length", str(len(body.encode())))
    peer.end_headers()
    peer.wfile.write(body.encode())


def _run(peer: BaseHTTPRequestHandler, session: Session, code: str) -> None:
    def gone() -> bool:
        ready, _, _ = select.select([peer.connection], [], [], 0)
        return bool(ready) and not peer.connection.recv(1)

    headers_sent = False

    def event(**fields: Any) -> None:
        nonlocal headers_sent
        if not headers_sent:
            peer.send_response(200)
            peer.send_header("Content-Type", "text/event-stream")
            peer.send_header("Connection", "close")
            peer.end_headers()
            headers_sent = True
        try:
            peer.wfile.write(json.dumps(fields | {"timestamp": 1796021827777}).encode() + b"\n\n")
            peer.wfile.flush()
        except OSError:
            pass

    peer.close_connection = True
    with session.running:
        if session.status != "active" or not session.write(code):
            why = "session process has exited"
            return event(type="error", text=why, error={"ename": "RuntimeError", "evalue": why})
        while (line := session.line(gone)) is not None:
            text, end, status = line.partition(_END)
            if text:
                event(type="stdout", text=text)
            if end:
                break
        else:
            why = "session process exited without end marker"
            return event(type="error", text=why, error={"ename": "RuntimeError", "evalue": why})
        code = status.strip()
        if code == "0":
            return event(type="execution_complete")
        return event(
            type="error",
            text=f"command exited with code {code}",
            error={"ename": "ExitError", "evalue": code},
        )
