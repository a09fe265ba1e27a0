# SPDX-License-Identifier: Apache-2.0
"""The ways in which the real host goes away while it makes a sandbox or runs a command: nothing is
left of either, and no process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import API_KEY, settings
from epp_host import Plugin
from sdk_host import Sdk

CREATE = """
import asyncio, sys
from agent_sandbox import ProviderSandbox

async def main():
    create = ProviderSandbox.create(provider="opensandbox", template="base", timeout=300{options})
    {wait}

try:
    asyncio.run(main())
except BaseException as failure:
    print(type(failure).__name__, getattr(failure, "code", ""))
"""

RUN = """
import asyncio
from agent_sandbox import ProviderSandbox

async def main():
    sandbox = await ProviderSandbox.connect("{id}", provider="opensandbox")
    await sandbox.commands.run("exec sleep 300", shell=True, timeout=300)

asyncio.run(main())
"""


class Running:
    """A program that uses the SDK."""

    def __init__(self, host: Sdk, text: str, config: dict[str, Any]) -> None:
        self._home = host.home
        self.process = subprocess.Popen(
            [sys.executable, "-c", text],
            env=host.environment(settings(config)),
            cwd=host.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def plugins(self) -> list[int]:
        """Processes of the plugin that this host installed."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                executable = str((entry / "exe").readlink()) if entry.name.isdigit() else ""
            except OSError:
                continue  # it ended, or is not ours
            if executable.startswith(str(self._home)):
                found.append(int(entry.name))
        return found

    def wait_until_gone(self, seconds: float = 15) -> None:
        deadline = time.monotonic() + seconds
        while self.plugins():
            assert time.monotonic() < deadline, "a plugin goes on without its host"
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture
def running() -> Iterator[list[Running]]:
    started: list[Running] = []
    yield started
    for one in started:
        one.stop()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_a_host_that_is_killed_leaves_no_sandbox(
    host: Sdk, running: list[Running], slow_opensandbox: Any, name: str
) -> None:
    config = {"base_url": slow_opensandbox.url, "api_key": API_KEY}
    one = Running(host, CREATE.format(options="", wait="await create"), config)
    running.append(one)
    sandbox_id = slow_opensandbox.wait_for_create()
    one.process.send_signal(getattr(signal, name))
    slow_opensandbox.wait_for_delete(sandbox_id, 8)
    one.process.wait(15)
    one.wait_until_gone()


@pytest.mark.parametrize(
    "options,wait,says",
    [
        ("", "await asyncio.wait_for(create, 1.5)", "TimeoutError"),
        (", request_timeout=3", "await create", "E8022"),
        (", request_timeout=0.5", "await create", "E8022"),
    ],
    ids=["cancelled", "own-deadline", "hosts-deadline"],
)
def test_a_create_that_is_given_up_leaves_no_sandbox(
    host: Sdk, running: list[Running], slow_opensandbox: Any, options: str, wait: str, says: str
) -> None:
    config = {"base_url": slow_opensandbox.url, "api_key": API_KEY}
    one = Running(host, CREATE.format(options=options, wait=wait), config)
    running.append(one)
    sandbox_id = slow_opensandbox.wait_for_create()
    output, _ = one.process.communicate(timeout=30)
    assert says in output
    slow_opensandbox.wait_for_delete(sandbox_id, 8)
    one.wait_until_gone()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_a_host_that_is_killed_leaves_no_command(
    host: Sdk, running: list[Running], config: dict[str, Any], plugin: Plugin, name: str
) -> None:
    sandbox_id = plugin.create()["sandbox_id"]
    try:
        one = Running(host, RUN.format(id=sandbox_id), config)
        running.append(one)
        until = "i=0; {} pgrep -f '^sleep 300'; do sleep 0.05; i=$((i+1)); [ $i -lt 400 ]; done"
        begun = plugin.shell(sandbox_id, until.format("until"))
        assert begun.code == 0, begun
        one.process.send_signal(getattr(signal, name))
        one.process.wait(15)
        one.wait_until_gone()
        ended = plugin.shell(sandbox_id, until.format("while"))
        assert ended.code == 0, ended
    finally:
        plugin.call("sandbox.kill", {"sandbox_id": sandbox_id})
