# SPDX-License-Identifier: Apache-2.0
"""A service or a daemon that answers every call with one HTTP status: the plugin says what
docs/errors.md gives to the bridge's own reason, so that a failure is the same thing everywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio
from astrabox_sandbox_bridge.client import (
    BridgeClient,
    BridgeError,
    Options,
    collect,
    command,
    v1,
)
from conftest import Spawn, program
from epp_host import Plugin
from error_table import answers
from program import BRIDGE_LISTENS, Program
from status_server import ID, STATUSES, StatusServer

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def upstream() -> Iterator[StatusServer]:
    server = StatusServer()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def address(upstream: StatusServer) -> Iterator[str]:
    """A bridge in front of it."""
    argv = [program("SANDBOX_BRIDGE"), "--listen=127.0.0.1:0", f"--upstream=http://{upstream.address}"]
    with Program(*argv, says=BRIDGE_LISTENS) as server:
        yield server.place


@pytest_asyncio.fixture
async def bridge(address: str) -> AsyncIterator[BridgeClient]:
    async with BridgeClient(Options(address)) as client:
        yield client


@pytest.fixture
def plugin(spawn: Spawn, upstream: StatusServer) -> Plugin:
    return spawn({"base_url": f"http://{upstream.address}"})


async def first(entries: AsyncIterator[Any]) -> None:
    async for _ in entries:
        return


BOX = {"sandbox_id": ID}
SPEC = v1.SandboxSpec(image="python:3.12-slim")
Call = Callable[[BridgeClient], Awaitable[object]]
OF_SERVICE: dict[str, tuple[dict[str, Any], Call]] = {
    "sandbox.create": ({"template": "base", "timeout": 300}, lambda b: b.sandboxes.create(SPEC)),
    "sandbox.get": (BOX, lambda b: b.sandboxes.get(ID)),
    "sandbox.list": ({"limit": 10}, lambda b: b.sandboxes.page()),
    "sandbox.pause": (BOX, lambda b: b.sandboxes.pause(ID)),
    "sandbox.kill": (BOX, lambda b: b.sandboxes.delete(ID)),
}
OF_DAEMON: dict[str, tuple[dict[str, Any], Call]] = {
    "files.read": ({**BOX, "path": "/x"}, lambda b: b.files.read_bytes(ID, "/x")),
    "files.list": ({**BOX, "path": "/x"}, lambda b: first(b.files.list(ID, "/x"))),
    "exec.run": (
        {**BOX, "cmd": "true", "args": [], "env": {}, "cwd": "", "user": "", "timeout": 60},
        lambda b: collect(b.execs.execute(ID, command(argv=["true"], timeout=60)), limit=1 << 20),
    ),
}


async def compare(
    plugin: Plugin, bridge: BridgeClient, calls: dict[str, tuple[dict[str, Any], Call]]
) -> None:
    table = answers()
    numbers = {method: plugin.start(method, params) for method, (params, _) in calls.items()}
    for method, (_, call) in calls.items():
        answer = plugin.answer(numbers[method], 60)
        try:
            await call(bridge)
        except BridgeError as failure:
            assert "error" in answer, (method, failure)
            code = answer["error"]["code"]
            word = (answer["error"].get("data") or {}).get("sdk_code")
            expected = table[failure.reason]
            assert (code, word) == expected, (method, failure, answer["error"])
        else:
            assert "result" in answer, (method, answer)


@pytest.mark.parametrize("status", STATUSES)
async def test_of_the_service(
    plugin: Plugin, bridge: BridgeClient, upstream: StatusServer, status: int
) -> None:
    upstream.status, upstream.daemon_fails = status, False
    await compare(plugin, bridge, OF_SERVICE)


@pytest.mark.parametrize("status", STATUSES)
async def test_of_the_daemon(
    plugin: Plugin, bridge: BridgeClient, upstream: StatusServer, status: int
) -> None:
    upstream.status, upstream.daemon_fails = status, True
    await compare(plugin, bridge, OF_DAEMON)
