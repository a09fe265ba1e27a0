# SPDX-License-Identifier: Apache-2.0
"""A host of EPP/1 for tests: starts the plugin as the real host does and speaks JSON lines with it.

It is as strict as the real one. A line that is too long, no JSON object or no UTF-8 fails the test,
because the real host would kill the plugin for it; so do an answer that nobody asked for, a second
answer, and a notification after a stream's end.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_LINE_BYTES = 8 * 1024 * 1024

# What the real host passes on, beside LC_* and what the manifest lists.
PASSED_ON = ["PATH", "HOME", "TMPDIR", "LANG"]


class EppError(Exception):
    """An error answer."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        data = error.get("data") or {}
        self.sdk_code: str | None = data.get("sdk_code")
        self.suggestion: str | None = data.get("suggestion")
        self.feature: str | None = (data.get("details") or {}).get("feature")


@dataclass
class Outcome:
    stdout: str
    stderr: str
    code: int
    notes: list[dict[str, Any]] = field(repr=False)

    @property
    def reason(self) -> str | None:
        return self.notes[-1]["params"].get("reason")


@dataclass
class Ending:
    """How close() went."""

    answered_after: float | None  # seconds until `shutdown` was answered; None: not within 2 s
    ended_after: float  # seconds until the process was gone
    signal_sent: str | None  # what it took beyond the end of input
    returncode: int


class Plugin:
    def __init__(
        self, command: str | list[str], data_dir: str, env: dict[str, str] | None = None
    ) -> None:
        argv = [command] if isinstance(command, str) else command
        environ = {k: os.environ[k] for k in PASSED_ON if k in os.environ}
        environ["ABX_PROVIDER_DATA_DIR"] = data_dir
        environ.update(env or {})
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=data_dir,
            env=environ,
            start_new_session=True,
        )
        self.messages: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.stderr = b""
        self._changed = threading.Condition()
        self._closed = False
        self._next_id = 1
        self._asked: set[Any] = set()
        self._write_lock = threading.Lock()
        self._readers = [
            threading.Thread(target=self._read_stdout, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for thread in self._readers:
            thread.start()

    # --- writing

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        with self._write_lock:
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def start(self, method: str, params: dict[str, Any] | None = None) -> int:
        number = self._next_id
        self._next_id += 1
        self._asked.add(number)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        # The real host's encoder: ASCII, a blank after ":" and ",", NaN as it is.
        self.raw(json.dumps(message).encode() + b"\n")
        return number

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.raw(
            json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n"
        )

    def cancel(self, number: Any) -> None:
        self.notify("$/cancel", {"id": number})

    # --- reading

    def wait_for(self, wanted: Any, timeout: float = 30.0, begin: int = 0) -> dict[str, Any]:
        """The first message from number `begin` on for which wanted(message) holds."""
        deadline = time.monotonic() + timeout
        position = begin
        with self._changed:
            while True:
                while position < len(self.messages):
                    if wanted(self.messages[position]):
                        return self.messages[position]
                    position += 1
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(
                        f"not said within {timeout} s; stderr: {self.stderr[-500:]!r}"
                    )
                if self._closed:
                    raise EOFError(
                        f"the plugin ended: {self.process.poll()}; {self.stderr[-500:]!r}"
                    )
                self._changed.wait(left)

    def answer(self, number: Any, timeout: float = 30.0) -> dict[str, Any]:
        return self.wait_for(lambda m: "method" not in m and m.get("id") == number, timeout)

    def result(self, number: int, timeout: float = 30.0) -> Any:
        message = self.answer(number, timeout)
        if isinstance(message.get("error"), dict):
            raise EppError(message["error"])
        return message["result"]

    def call(self, method: str, params: dict[str, Any] | None = None, timeout: float = 30.0) -> Any:
        return self.result(self.start(method, params), timeout)

    def error(
        self, method: str, params: dict[str, Any] | None = None, timeout: float = 30.0
    ) -> EppError:
        try:
            result = self.call(method, params, timeout)
        except EppError as error:
            return error
        raise AssertionError(f"{method} should have failed and answered {str(result)[:300]}")

    def initialize(self, config: dict[str, Any] | None = None, **core: Any) -> dict[str, Any]:
        return self.call(
            "initialize",
            {
                "protocol": "epp/1",
                "host": {"name": "agent-sandbox", "version": "0.4.0a6"},
                "provider_id": "opensandbox",
                "config": config or {},
                "core": {"http_timeout": 30.0, **core},
                "locale": "en",
                "data_dir": os.environ.get("TEST_TMPDIR", "/tmp"),
            },
            timeout=10,
        )

    # --- what tests do all the time

    def create(self, **changes: Any) -> dict[str, Any]:
        params = {
            "template": "base",
            "timeout": 300,
            "metadata": {},
            "envs": {},
            "cpu": None,
            "memory": None,
            "disk": None,
            "gpu": None,
            "request_timeout": None,
        }
        params.update(changes)
        return self.call("sandbox.create", params, timeout=90)

    def exec_params(
        self, sandbox_id: str, cmd: str, args: list[str] | None = None, **changes: Any
    ) -> dict[str, Any]:
        params = {
            "sandbox_id": sandbox_id,
            "cmd": cmd,
            "args": args or [],
            "env": {},
            "cwd": "",
            "user": "",
            "timeout": 60,
        }
        params.update(changes)
        return params

    def run(
        self,
        sandbox_id: str,
        cmd: str,
        args: list[str] | None = None,
        wait: float = 60,
        **changes: Any,
    ) -> Outcome:
        params = self.exec_params(sandbox_id, cmd, args, **changes)
        started = self.call("exec.start", params, timeout=wait)
        return self.finish(started["process_id"], wait)

    def shell(self, sandbox_id: str, text: str, wait: float = 60, **changes: Any) -> Outcome:
        return self.run(sandbox_id, "sh", ["-c", text], wait, **changes)

    def finish(self, process_id: str, wait: float = 60) -> Outcome:
        notes = list(self.notes(process_id, "exec.exit", wait))
        text = {"stdout": "", "stderr": ""}
        for note in notes:
            if note["method"] == "exec.output":
                text[note["params"]["stream"]] += note["params"]["data"]
        return Outcome(text["stdout"], text["stderr"], notes[-1]["params"]["exit_code"], notes)

    def notes(self, process_id: str, last: str, wait: float = 60) -> Iterator[dict[str, Any]]:
        """The notifications of one process up to the one named `last`."""
        position = 0
        while True:
            note = self.wait_for(
                lambda m: "method" in m and m["params"].get("process_id") == process_id,
                wait,
                position,
            )
            yield note
            position = (
                next(i for i in range(position, len(self.messages)) if self.messages[i] is note) + 1
            )
            if note["method"] == last:
                return

    def write(self, sandbox_id: str, path: str, content: bytes, **changes: Any) -> Any:
        text = base64.b64encode(content).decode("ascii")
        return self.call(
            "files.write",
            {"sandbox_id": sandbox_id, "path": path, "content_b64": text, **changes},
            60,
        )

    def read(self, sandbox_id: str, path: str, **changes: Any) -> bytes:
        result = self.call("files.read", {"sandbox_id": sandbox_id, "path": path, **changes}, 60)
        return base64.b64decode(result["content_b64"], validate=True)

    # --- the end

    def close(self) -> Ending:
        """What the real host does: shutdown (2 s), end of input (3 s), SIGTERM (3 s), SIGKILL."""
        begin = time.monotonic()
        answered: float | None = None
        try:
            self.call("shutdown", {}, timeout=2)
            answered = time.monotonic() - begin
        except (TimeoutError, EOFError, BrokenPipeError, ValueError):
            pass
        self.close_input()
        sent = None
        for name in (None, "SIGTERM", "SIGKILL"):
            if name is not None:
                sent = name
                os.killpg(self.process.pid, getattr(signal, name))
            try:
                self.process.wait(3)
                break
            except subprocess.TimeoutExpired:
                continue
        ended = time.monotonic() - begin
        for thread in self._readers:
            thread.join(3)
        self.check()
        return Ending(answered, ended, sent, self.process.returncode)

    def close_input(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def wait_end(self, timeout: float = 10) -> int:
        code = self.process.wait(timeout)
        for thread in self._readers:
            thread.join(3)
        return code

    def kill(self) -> None:
        """As a host that dies: no word, the pipes just end."""
        assert self.process.stdout is not None
        self.close_input()

    def check(self) -> None:
        assert not self.faults, self.faults

    # --- threads

    def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        answered: list[Any] = []
        ended: set[str] = set()
        buffer = bytearray()
        descriptor = self.process.stdout.fileno()
        while True:
            try:
                chunk = os.read(descriptor, 1 << 20)
            except OSError:
                chunk = b""
            if not chunk:
                break
            buffer += chunk
            while (end := buffer.find(b"\n")) >= 0:
                line = bytes(buffer[: end + 1])
                del buffer[: end + 1]
                self._take(line, answered, ended)
            if len(buffer) > MAX_LINE_BYTES:
                self.faults.append("a line without an end")
                break
        with self._changed:
            if buffer:
                self.faults.append(f"half a line at the end: {bytes(buffer[:100])!r}")
            self._closed = True
            self._changed.notify_all()

    def _take(self, line: bytes, answered: list[Any], ended: set[str]) -> None:
        if len(line) > MAX_LINE_BYTES:
            self.faults.append(f"a line of {len(line)} bytes")
        try:
            message = json.loads(line.decode("utf-8"))
        except ValueError:
            self.faults.append(f"no JSON in UTF-8: {line[:200]!r}")
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self.faults.append(f"no JSON-RPC object: {line[:200]!r}")
            return
        if "method" in message:
            process = message["params"].get("process_id", "")
            if process in ended:
                self.faults.append(f"{message['method']} after the end of {process}")
            if message["method"] in ("exec.exit", "pty.exit"):
                ended.add(process)
                if type(message["params"].get("exit_code")) is not int:
                    self.faults.append(f"exit_code is no integer: {line[:200]!r}")
        elif ("result" in message) == ("error" in message):
            self.faults.append(f"neither or both of result and error: {line[:200]!r}")
        elif type(message.get("id")) is int and message["id"] in self._asked:
            if message["id"] in answered:
                self.faults.append(f"answered twice: {message['id']}")
            answered.append(message["id"])
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while chunk := os.read(self.process.stderr.fileno(), 65536):
            self.stderr += chunk
