# SPDX-License-Identifier: Apache-2.0
"""A built bridge with the local OpenSandbox, and the built sbx, used as people use them.

Everything is on loopback ports of the system's choice and ended by process id. The bridge is shared
by the tests of a file; each test has a sandbox of its own when it asks for one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from program import BRIDGE_LISTENS, PATIENCE_SECONDS, Program

# Whoever runs the tests may have ignored them, and sbx, like every program, would take that over.
for _signal in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, signal.SIG_DFL)


def start_bridge(*flags: str) -> Program:
    """In a session of its own: what is left of that can be counted."""
    return Program(os.environ["SANDBOX_BRIDGE_BINARY"], "--upstream=local", "--listen=127.0.0.1:0",
                   *flags, says=BRIDGE_LISTENS, own_session=True)


@pytest.fixture(scope="module")
def bridge() -> Iterator[Program]:
    running = start_bridge()
    yield running
    assert running.stop() == 0, running.log


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


def inside(sbx: Sbx, sandbox: str, line: str) -> str:
    """What a line of shell prints in a sandbox; it must succeed."""
    return sbx.text("exec", sandbox, "-c", line)


@pytest.fixture
def sbx(bridge: Program) -> Sbx:
    return Sbx(bridge.place)


@pytest.fixture
def sandbox(sbx: Sbx) -> Iterator[str]:
    """A sandbox of the test's own; deleted with proof."""
    sandbox_id = sbx.json("create", "--ttl=30m")["sandbox_id"]
    yield sandbox_id
    assert sbx.run("rm", sandbox_id).returncode == 0
