# SPDX-License-Identifier: Apache-2.0
"""The plain client: errors, connections, repeats, deadlines, streams."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from astrabox_sandbox_bridge.client import (
    BRIDGE_UNREACHABLE,
    BridgeClient,
    Options,
    collect,
    command,
    errors,
    token_file,
    v1,
)
from astrabox_sandbox_bridge.client.connection import target_of

from conftest import bridge_failure as failure
from fake_bridge import FakeBridge, Upstream
from fake_bridge.errors import CODES

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def box(client: BridgeClient) -> str:
    made = await client.sandboxes.create(v1.SandboxSpec(image="i"))
    return made.sandbox.sandbox_id


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", CODES)
async def test_every_reason_arrives_with_its_details(
    bridge: FakeBridge, client: BridgeClient, reason: str
) -> None:
    bridge.fail(
        "GetSandbox",
        reason,
        "what happened",
        times=3,
        field="a.b",
        retry_after=1.5,
        upstream_code="X",
    )
    error = await failure(client.sandboxes.get("box"))
    assert (error.reason, error.message, error.code) == (reason, "what happened", CODES[reason])
    assert dict(error.metadata) == {"upstream_code": "X"}
    assert (error.field, error.retry_after) == ("a.b", 1.5)
    assert str(error) == f"{reason}: what happened"


@pytest.mark.parametrize(
    ("reason", "read_as"),
    [
        ("UPSTREAM_UNAVAILABLE", BRIDGE_UNREACHABLE),
        ("UNSUPPORTED_FEATURE", "UNSUPPORTED_FEATURE"),
        ("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"),
        ("CALLER_UNAUTHENTICATED", "CALLER_UNAUTHENTICATED"),
        ("REPLAY_GAP", "INTERNAL"),
        ("INVALID_ARGUMENT", "INVALID_ARGUMENT"),
    ],
)
async def test_a_status_without_details_is_read_by_its_code(
    bridge: FakeBridge, client: BridgeClient, reason: str, read_as: str
) -> None:
    bridge.fail("GetSandbox", reason, bare=True, times=3)
    assert (await failure(client.sandboxes.get("box"))).reason == read_as


async def test_no_bridge_is_told_in_time_with_the_address() -> None:
    async with BridgeClient(Options("127.0.0.1:1", connect_timeout=0.3)) as client:
        started = time.monotonic()
        error = await failure(client.sandboxes.get("box"))
        assert time.monotonic() - started < 3
        assert error.reason == BRIDGE_UNREACHABLE
        assert "127.0.0.1:1" in error.message


async def test_a_service_that_the_bridge_does_not_know(upstream: Upstream) -> None:
    async with (
        FakeBridge(upstream, isolation=False) as old,
        BridgeClient(Options(old.address)) as client,
    ):
        assert (await failure(client.isolation.get("box"))).reason == "UNSUPPORTED_FEATURE"


class _Call:
    """The parts of a grpc.aio call that PeerStatus looks at."""

    def __init__(self) -> None:
        self.status: tuple[grpc.StatusCode, str] = (grpc.StatusCode.OK, "")
        self.note: Any = None

    def add_done_callback(self, note: Any) -> None:
        self.note = note

    def set(self, code: grpc.StatusCode, details: str) -> None:
        self.status = (code, details)
        self.note(self)

    async def code(self) -> grpc.StatusCode:
        return self.status[0]

    async def details(self) -> str:
        return self.status[1]

    async def trailing_metadata(self) -> tuple[()]:
        return ()


WRITE_FAILED = (grpc.StatusCode.INTERNAL, "Internal error from Core")


@pytest.mark.parametrize("order", ["before", "after", "never"])
async def test_the_peers_status_counts_not_the_failed_write(
    monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """Whichever of the two grpc.aio shows at the end."""
    monkeypatch.setattr(errors, "_STATUS_SECONDS", 0.2)
    call: Any = _Call()
    status = errors.PeerStatus(call)
    if order == "before":
        call.set(grpc.StatusCode.INVALID_ARGUMENT, "told")
    call.set(*WRITE_FAILED)
    if order == "after":
        asyncio.get_running_loop().call_later(
            0.05, call.set, grpc.StatusCode.INVALID_ARGUMENT, "told"
        )
    empty = grpc.aio.Metadata()
    failed = await status.failure(grpc.aio.AioRpcError(WRITE_FAILED[0], empty, empty, "x"))
    assert failed.reason == ("INTERNAL" if order == "never" else "INVALID_ARGUMENT")


# --- repeats and deadlines ------------------------------------------------------------------------


async def test_a_broken_connection_is_repeated_where_it_may_be(
    bridge: FakeBridge, client: BridgeClient, box: str
) -> None:
    bridge.fail("GetSandbox", "UPSTREAM_UNAVAILABLE", bare=True, times=2)
    assert (await client.sandboxes.get(box)).sandbox_id == box
    bridge.fail("GetSandbox", "UPSTREAM_UNAVAILABLE", bare=True, times=3)
    assert (await failure(client.sandboxes.get(box))).reason == BRIDGE_UNREACHABLE
    assert len(bridge.asked("GetSandbox")) == 6


async def test_what_may_happen_once_is_asked_once(bridge: FakeBridge, client: BridgeClient) -> None:
    bridge.fail("CreateSandbox", "UPSTREAM_UNAVAILABLE", bare=True)
    error = await failure(client.sandboxes.create(v1.SandboxSpec(image="i")))
    assert error.outcome_unknown
    bridge.fail("Run", "UPSTREAM_UNAVAILABLE", bare=True)
    await failure(client.execs.run("box", command("true")))
    assert len(bridge.asked("CreateSandbox")) == len(bridge.asked("Run")) == 1


async def test_an_answer_is_not_repeated(bridge: FakeBridge, client: BridgeClient) -> None:
    bridge.fail("GetSandbox", "SANDBOX_UNREACHABLE")
    assert (await failure(client.sandboxes.get("box"))).reason == "SANDBOX_UNREACHABLE"
    assert len(bridge.asked("GetSandbox")) == 1


@pytest.mark.parametrize("method", ["Execute", "AttachProcess", "WriteFile", "Run"])
async def test_what_had_no_connection_is_asked_again(
    bridge: FakeBridge, client: BridgeClient, box: str, tmp_path: Path, method: str
) -> None:
    """In gRPC's words of having had nothing to send a call on; nothing can happen twice."""
    started = await client.processes.start(box, "true", on_attach=True)
    calls: dict[str, Any] = {
        "Execute": lambda: collect(client.execs.execute(box, command("true")), limit=9),
        "AttachProcess": lambda: client.processes.attach(box, started.process_id),
        "WriteFile": lambda: client.files.write(
            box, v1.WriteOptions(path=f"{tmp_path}/f"), b"x" * 2_000_000
        ),
        "Run": lambda: client.execs.run(box, command("true")),
    }
    words = "connections to all backends failing; last error: refused"
    bridge.fail(method, "UPSTREAM_UNAVAILABLE", words, bare=True, times=2)
    await calls[method]()
    assert len(bridge.asked(method)) == 3
    bridge.fail(method, "UPSTREAM_UNAVAILABLE", "socket closed", bare=True)
    assert (await failure(calls[method]())).reason == BRIDGE_UNREACHABLE
    assert len(bridge.asked(method)) == 4


async def test_a_draining_bridge_took_nothing(
    bridge: FakeBridge, client: BridgeClient, box: str
) -> None:
    bridge.fail("Run", "DRAINING", retry_after=0.01)
    ran = await client.execs.run(box, command("echo once"))
    assert ran.stdout == b"once\n"


async def test_what_a_draining_bridge_cut_is_not_done_twice(
    bridge: FakeBridge, client: BridgeClient, box: str
) -> None:
    bridge.fail("Run", "DRAINING", retry_after=0.01, waiting_for="the command to end")
    error = await failure(client.execs.run(box, command("echo twice")))
    assert error.reason == "DRAINING"
    assert error.outcome_unknown
    assert len(bridge.asked("Run")) == 1
    # What changes nothing is asked again.
    bridge.fail("GetSandbox", "DRAINING", retry_after=0.01, waiting_for="the upstream")
    assert (await client.sandboxes.get(box)).sandbox_id == box


async def test_an_end_without_a_word_is_a_bridge_that_went_away(
    bridge: FakeBridge, client: BridgeClient, box: str
) -> None:
    """gRPC's server ends what meets its shutdown with a bare CANCELLED, and nobody here did."""
    bridge.fail("Run", "CANCELLED", bare=True)
    error = await failure(client.execs.run(box, command("true")))
    assert error.reason == BRIDGE_UNREACHABLE
    assert error.outcome_unknown
    assert "shutting down" in error.message
    assert len(bridge.asked("Run")) == 1
    bridge.fail("GetSandbox", "CANCELLED", bare=True)
    assert (await client.sandboxes.get(box)).sandbox_id == box
    bridge.fail("GetSandbox", "CANCELLED")
    assert (await failure(client.sandboxes.get(box))).reason == "CANCELLED"


async def test_a_request_that_grpc_does_not_take(client: BridgeClient, box: str) -> None:
    """gRPC refuses it on this side; on the other in the same words."""
    error = await failure(client.execs.run(box, command("x" * (17 << 20))))
    assert error.reason == "INVALID_ARGUMENT"
    assert "in parts" in error.message


async def test_a_call_ends_at_its_deadline(bridge: FakeBridge) -> None:
    gate = bridge.hold("GetSandbox")
    async with BridgeClient(Options(bridge.address, call_timeout=0.3)) as client:
        started = time.monotonic()
        bridge.upstream.create(v1.SandboxSpec())
        error = await failure(client.sandboxes.get("box-1"))
        assert error.reason == "DEADLINE_EXCEEDED"
        assert time.monotonic() - started < 5
    gate.set()


async def test_cancelling_is_cancelling(bridge: FakeBridge, client: BridgeClient, box: str) -> None:
    gate = bridge.hold("GetSandbox")
    asking = asyncio.create_task(client.sandboxes.get(box))
    await bridge.waiting["GetSandbox"].wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    gate.set()


async def test_closing_the_client_is_no_cancellation(
    bridge: FakeBridge, client: BridgeClient, box: str
) -> None:
    """A caller whose client is closed under it gets an error, not its own cancellation."""
    gate = bridge.hold("GetSandbox")
    asking = asyncio.create_task(client.sandboxes.get(box))
    await bridge.waiting["GetSandbox"].wait()
    await client.close()
    error = await failure(asking)
    assert error.reason == BRIDGE_UNREACHABLE
    assert (await failure(client.sandboxes.get(box))).reason == BRIDGE_UNREACHABLE
    gate.set()


async def test_the_token_is_sent_and_follows_its_file(bridge: FakeBridge, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    async with BridgeClient(Options(bridge.address, token=token_file(file))) as client:
        await client.bridge.info()
        file.write_text("two-two\n")
        await client.bridge.info()
        file.unlink()
        assert (await failure(client.bridge.info())).reason == "CALLER_UNAUTHENTICATED"
    sent = [metadata.get("authorization") for _, _, metadata in bridge.calls]
    assert sent == ["Bearer one", "Bearer two-two"]


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("127.0.0.1:1", "127.0.0.1:1"),
        (" host:1 ", "host:1"),
        ("127.0.0.1:1, 127.0.0.1:2", "ipv4:127.0.0.1:1,127.0.0.1:2"),
        ("[::1]:1,[::2]:2", "ipv6:[::1]:1,[::2]:2"),
        ("dns:///bridge:1", "dns:///bridge:1"),
        ("unix:/run/b", "unix:/run/b"),
        ("a:1,b:2", "a:1,b:2"),
    ],
)
async def test_targets(address: str, target: str) -> None:
    assert target_of(address) == target
