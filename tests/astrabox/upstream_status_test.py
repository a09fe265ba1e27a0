# SPDX-License-Identifier: Apache-2.0
"""An upstream, or its daemons, that answer every call with one HTTP status: the platform gets what
docs/astrabox-provider.md publishes for the bridge's own reason, so that a failure is the same thing
everywhere."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import SandboxCreateSpec
from astrabox_sandbox_bridge.client import BridgeClient, BridgeError, collect, command, v1
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider
from status_server import ID, STATUSES, StatusServer

from conftest import Providers
from real_bridge import RealBridge

pytestmark = pytest.mark.asyncio

Specs = Callable[..., SandboxCreateSpec]
# What a provider does, and the same at the bridge.
Pair = tuple[Callable[[SandboxBridgeProvider], Awaitable[Any]], Callable[[BridgeClient], Any]]


@pytest.fixture(scope="module")
def failing() -> Iterator[StatusServer]:
    server = StatusServer()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def place(failing: StatusServer) -> Iterator[str]:
    with RealBridge(f"http://{failing.address}") as bridge:
        yield bridge.place


@pytest.fixture
def failed(place: str, make_provider: Providers) -> SandboxBridgeProvider:
    return make_provider(ADDRESS=place)


def published() -> dict[str, tuple[str, int, str]]:
    """Reason → code, status, the data planes' exception."""
    document = Path("docs/astrabox-provider.md").read_text("utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.*?) \| (\d+) \| `?(\w+)`? \|", document, re.MULTILINE)
    table = {reason: (code.strip("`"), int(status), plane) for reason, code, status, plane in rows}
    assert len(table) > 40
    return table


async def first(entries: AsyncIterator[Any]) -> None:
    async for _ in entries:
        return


def handle_of(provider: SandboxBridgeProvider) -> Any:
    return provider.handle(v1.Sandbox(sandbox_id=ID))


async def reason_at(client: BridgeClient, call: Callable[[BridgeClient], Any]) -> str | None:
    try:
        await call(client)
    except BridgeError as failure:
        return failure.reason
    return None


async def raised_by(work: Awaitable[Any]) -> Exception | None:
    try:
        await work
    except Exception as error:
        return error
    return None


def is_server_fault(error: Exception) -> bool:
    """Nothing that the platform would take for its own request's fault, or for a sandbox that is
    gone."""
    if isinstance(error, APIError):
        return error.status_code >= 500
    return type(error).__name__ == "SandboxUnreachable"


OF_SERVICE: dict[str, Pair] = {
    "describe": (lambda p: p.describe_sandbox(ID), lambda b: b.sandboxes.get(ID)),
    "expires_at": (lambda p: p.expires_at(ID), lambda b: b.sandboxes.get(ID)),
    "list": (lambda p: p.list_sandboxes(), lambda b: b.sandboxes.page()),
    "pause": (lambda p: p.pause(ID), lambda b: b.sandboxes.pause(ID)),
}
OF_DAEMON: dict[str, Pair] = {
    "read": (
        lambda p: handle_of(p).files.read_bytes("/x"),
        lambda b: b.files.read_bytes(ID, "/x"),
    ),
    "list_directory": (
        lambda p: handle_of(p).files.list_directory("/x"),
        lambda b: first(b.files.list(ID, "/x")),
    ),
    "run": (
        lambda p: handle_of(p).commands.run("true"),
        lambda b: collect(b.execs.execute(ID, command("true", user=0, timeout=60)), limit=1 << 20),
    ),
}


@pytest.mark.parametrize("call", OF_SERVICE)
@pytest.mark.parametrize("status", STATUSES)
async def test_control_calls(
    failed: SandboxBridgeProvider, failing: StatusServer, status: int, call: str
) -> None:
    failing.status, failing.daemon_fails = status, False
    ours, bridges = OF_SERVICE[call]
    reason = await reason_at(failed.client(), bridges)
    assert reason is not None
    error = await raised_by(ours(failed))
    assert isinstance(error, APIError)
    code, http, _ = published()[reason]
    if code != "by the operation":
        assert error.code == code, reason
    assert (error.status_code, error.cause_code) == (http, reason)
    assert status < 500 or is_server_fault(error)


@pytest.mark.parametrize("status", STATUSES)
async def test_create(
    failed: SandboxBridgeProvider, failing: StatusServer, make_spec: Specs, status: int
) -> None:
    """Its own look for an earlier sandbox fails first, or the request itself."""
    failing.status, failing.daemon_fails = status, False
    error = await raised_by(failed.create_sandbox(make_spec()))
    assert isinstance(error, APIError)
    assert error.cause_code is not None
    code, http, _ = published()[error.cause_code]
    expected = "SANDBOX_CONFIG_INVALID" if code == "by the operation" else code
    assert (error.code, error.status_code) == (expected, http)
    assert status < 500 or is_server_fault(error)


@pytest.mark.parametrize("status", STATUSES)
async def test_connect_and_kill(
    failed: SandboxBridgeProvider, failing: StatusServer, status: int
) -> None:
    """Only "not found" reads as gone; nothing reads as destroyed."""
    failing.status, failing.daemon_fails = status, False
    error = await raised_by(failed.connect(ID))
    assert isinstance(error, APIError)
    gone = error.cause_code == "SANDBOX_NOT_FOUND"
    assert (error.code == "SANDBOX_GONE") == gone == (error.status_code == 404)
    assert status in (404, 410) or not gone
    answer: bool | None = None
    refused: APIError | None = None
    try:
        answer = await failed.kill(ID)
    except APIError as failure:
        refused = failure
    assert refused is None or status < 500 or is_server_fault(refused)
    assert answer is not True or gone
    seen = await failed.probe(ID)
    assert (seen.probe_status == "NOT_FOUND") == gone


@pytest.mark.parametrize("call", OF_DAEMON)
@pytest.mark.parametrize("status", STATUSES)
async def test_data_planes(
    failed: SandboxBridgeProvider, failing: StatusServer, status: int, call: str
) -> None:
    failing.status, failing.daemon_fails = status, True
    ours, bridges = OF_DAEMON[call]
    reason = await reason_at(failed.client(), bridges)
    begin = time.monotonic()
    error = await raised_by(ours(failed))
    assert time.monotonic() - begin < 15  # a daemon that is gone for good is given up
    assert (reason is None) == (error is None)
    if reason is None or error is None:
        return
    code, http, plane = published()[reason]
    assert type(error).__name__ == plane, reason
    if isinstance(error, APIError) and code != "by the operation":
        assert (error.code, error.status_code) == (code, http)
    assert status < 500 or is_server_fault(error)
