# SPDX-License-Identifier: Apache-2.0
"""A built bridge with the local OpenSandbox, and the built sbx, used as people use them.

Everything is on loopback ports of the system's choice and ended by process id. The bridge is shared
by the tests of a file; each test has a sandbox of its own when it asks for one.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LISTENING = re.compile(r'msg="listening on ([^" ]+)"')
# Sanitizer builds on a busy machine are slow; nothing here waits this long when all is well.
PATIENCE_SECONDS = 60.0


def eventually(condition: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


@dataclass
class Bridge:
    """A running sandbox_bridge."""

    process: subprocess.Popen[bytes]
    address: str
    log: Path

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)


def start_bridge(log: Path, *flags: str) -> Bridge:
    command = [os.environ["SANDBOX_BRIDGE_BINARY"], "--upstream=local", "--listen=127.0.0.1:0",
               *flags]
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=stderr,
                                   start_new_session=True)
    try:
        def listening() -> bool:
            assert process.poll() is None, log.read_text(encoding="utf-8")
            return LISTENING.search(log.read_text(encoding="utf-8")) is not None

        eventually(listening, "the bridge listens")
    except BaseException:
        process.kill()
        process.wait()
        raise
    found = LISTENING.search(log.read_text(encoding="utf-8"))
    assert found is not None
    return Bridge(process, found.group(1), log)


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    running = start_bridge(tmp_path_factory.mktemp("bridge") / "log")
    yield running
    code = running.stop()
    assert code == 0, running.log.read_text(encoding="utf-8")


class Sbx:
    """Runs the built sbx against a bridge."""

    def __init__(self, address: str) -> None:
        self._environment = {**os.environ, "SANDBOX_BRIDGE_ADDRESS": address}
        self._program = os.environ["SBX_BINARY"]

    def environment(self) -> dict[str, str]:
        """What makes another sbx find the bridge."""
        return {"SANDBOX_BRIDGE_ADDRESS": self._environment["SANDBOX_BRIDGE_ADDRESS"]}

    def run(self, *args: str, stdin: bytes | int = b"",
            env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        """To its end. `stdin` is what it reads, or a descriptor."""
        source: dict[str, Any] = ({"input": stdin} if isinstance(stdin, bytes) and stdin else
                                  {"stdin": subprocess.DEVNULL if stdin == b"" else stdin})
        return subprocess.run([self._program, *args], capture_output=True, check=False,
                              env=self._environment | (env or {}), timeout=PATIENCE_SECONDS * 2,
                              **source)

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([self._program, *args], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self._environment)

    def text(self, *args: str) -> str:
        """The stdout of a run that must succeed."""
        ran = self.run(*args)
        assert ran.returncode == 0, ran.stderr.decode()
        return ran.stdout.decode()

    def json(self, *args: str) -> Any:
        return json.loads(self.text(*args, "--json"))


@pytest.fixture
def sbx(bridge: Bridge) -> Sbx:
    return Sbx(bridge.address)


@pytest.fixture
def sandbox(sbx: Sbx) -> Iterator[str]:
    """A sandbox of the test's own; deleted with proof."""
    sandbox_id = sbx.json("create", "--ttl=30m")["sandbox_id"]
    yield sandbox_id
    assert sbx.run("rm", sandbox_id).returncode == 0
