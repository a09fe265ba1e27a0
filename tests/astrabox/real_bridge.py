# SPDX-License-Identifier: Apache-2.0
"""The real bridge and an OpenSandbox, for tests that prove what the fake bridge only claims.

The build names the programs: SANDBOX_BRIDGE_BINARY, LOCAL_OPENSANDBOX_BINARY. Where OPENSANDBOX_URL
and OPENSANDBOX_API_KEY_FILE name a running server (tests/integration/opensandbox), it is that one.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pytest

_START_SECONDS = 60.0


def program(variable: str) -> Path:
    """A program that the build names; without it the test is skipped and says so."""
    named = os.environ.get(variable)
    if not named:
        pytest.skip(f"{variable} names no program; run the tests with ./test")
    return Path(named).resolve()


class Process:
    """A program that says where it listens. Ended, with its children, when the block is left."""

    pattern = ""

    def __init__(self, *command: str | Path) -> None:
        self.log: list[str] = []
        self._found: queue.Queue[str | None] = queue.Queue()
        self._process = subprocess.Popen(  # noqa: S603
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert self._process.stdout is not None
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
        self.place = self._await_place()

    def _read(self, output: IO[str]) -> None:
        for line in output:
            self.log.append(line)
            found = re.search(self.pattern, line)
            if found:
                self._found.put(found[1])
        self._found.put(None)

    def _await_place(self) -> str:
        try:
            place = self._found.get(timeout=_START_SECONDS)
        except queue.Empty:
            place = None
        if place is None:
            self.stop()
            raise AssertionError("it did not start:\n" + "".join(self.log))
        return place

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """As a crash."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class LocalOpenSandbox(Process):
    """`place` is its URL."""

    pattern = r"(http://[\d.:]+)"

    def __init__(self, *flags: str) -> None:
        super().__init__(program("LOCAL_OPENSANDBOX_BINARY"), "--listen=127.0.0.1:0", *flags)


class ServerThatRuns:
    """The OpenSandbox that was started before the tests, as a LocalOpenSandbox."""

    def __init__(self) -> None:
        self.place = os.environ["OPENSANDBOX_URL"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def an_opensandbox() -> LocalOpenSandbox | ServerThatRuns:
    """A local OpenSandbox, or the server that runs already."""
    unavailable = os.environ.get("OPENSANDBOX_UNAVAILABLE")
    if unavailable:
        pytest.skip(f"no real OpenSandbox here: {unavailable}")
    return ServerThatRuns() if "OPENSANDBOX_URL" in os.environ else LocalOpenSandbox()


class RealBridge(Process):
    """`place` is its address. Without an upstream: the local one inside it, or the server that
    runs already."""

    pattern = r"listening on ([\d.]+:\d+)"

    def __init__(self, upstream: str = "", *flags: str, port: int = 0) -> None:
        running = os.environ.get("OPENSANDBOX_URL")
        upstream = upstream or running or "local"
        if upstream == running and not any(flag.startswith("--api_key_file") for flag in flags):
            flags = (*flags, f"--api_key_file={os.environ['OPENSANDBOX_API_KEY_FILE']}")
        super().__init__(
            program("SANDBOX_BRIDGE_BINARY"),
            f"--upstream={upstream}",
            f"--listen=127.0.0.1:{port}",
            *flags,
        )
