# SPDX-License-Identifier: Apache-2.0
"""Several bridges, several event loops, and a bridge that goes away and comes back."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from astrabox.seams.sandbox import SandboxCreateSpec
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider

from conftest import Providers
from fake_bridge import FakeBridge, Upstream

pytestmark = pytest.mark.asyncio

Specs = Callable[..., SandboxCreateSpec]


async def test_any_replica_serves_any_sandbox(
    upstream: Upstream, make_provider: Providers, make_spec: Specs, tmp_path: Any
) -> None:
    async with FakeBridge(upstream) as one, FakeBridge(upstream) as two:
        first = make_provider(ADDRESS=one.address)
        handle = await first.create_sandbox(make_spec())
        process = await _begin(handle)
        await handle.files.write_file(f"{tmp_path}/f", b"of one", mode=0o600)

        second = make_provider(ADDRESS=two.address)
        other = await second.connect(handle.sandbox_id)
        assert await other.files.read_bytes(f"{tmp_path}/f") == b"of one"
        # The process goes on where the first replica's reader stopped.
        processes: Any = other.processes
        held = await processes.attach(process, since=6)
        await held.write(b"two\n")
        assert await anext(held.output()) == (6, b"two\n")
        await held.close()
        # The same assignment through the other replica is the same sandbox.
        again = await second.create_sandbox(make_spec())
        assert again.sandbox_id == handle.sandbox_id
        assert await second.kill(handle.sandbox_id)
        assert (await first.probe(handle.sandbox_id)).probe_status == "NOT_FOUND"


async def _begin(handle: Any) -> str:
    name: str = await handle.processes.create(command="echo ready; cat")
    held = await handle.processes.attach(name)
    assert await anext(held.output()) == (0, b"ready\n")
    await held.close()
    return name


async def test_calls_go_round_the_replicas_and_survive_one(
    upstream: Upstream, make_provider: Providers, make_spec: Specs
) -> None:
    async with FakeBridge(upstream) as one, FakeBridge(upstream) as two:
        provider = make_provider(ADDRESS=f"{one.address},{two.address}")
        handle = await provider.create_sandbox(make_spec())
        for _ in range(50):
            if one.asked("ProbeSandbox") and two.asked("ProbeSandbox"):
                break
            assert (await provider.probe(handle.sandbox_id)).probe_status == "OK"
            await asyncio.sleep(0.01)
        assert one.asked("ProbeSandbox")
        assert two.asked("ProbeSandbox")
        await one.stop()
        for _ in range(20):
            assert (await provider.probe(handle.sandbox_id)).probe_status == "OK"
            assert (await handle.commands.run("echo x")).stdout == "x\n"


async def test_a_bridge_that_restarts_mid_conversation(
    upstream: Upstream, make_provider: Providers, make_spec: Specs
) -> None:
    """What was running is told; what comes after works with the same handles."""
    bridge = await FakeBridge(upstream).start()
    provider = make_provider(ADDRESS=bridge.address)
    handle = await provider.create_sandbox(make_spec())
    name = await _begin(handle)
    processes: Any = handle.processes
    held = await processes.attach(name, since=6)
    running = asyncio.create_task(handle.commands.run("sleep 60"))
    await asyncio.sleep(0.2)

    await bridge.stop()
    with pytest.raises(Exception, match="BRIDGE_UNREACHABLE"):
        await running
    with pytest.raises(Exception, match="BRIDGE_UNREACHABLE"):
        await anext(held.output())
    # While it is away a call waits; when it is back the call goes through.
    waiting = asyncio.create_task(handle.commands.run("echo patience"))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    back = await FakeBridge(upstream, port=bridge.port).start()
    assert (await asyncio.wait_for(waiting, 15)).stdout == "patience\n"

    assert (await provider.connect(handle.sandbox_id)).sandbox_id == handle.sandbox_id
    held = await processes.attach(name, since=6)
    await held.write(b"still here\n")
    assert await anext(held.output()) == (6, b"still here\n")
    await held.close()
    await back.stop()


async def test_two_event_loops_in_one_process(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    """One provider, used at once from two loops in two threads; each has a channel of its own."""
    handle = await provider.create_sandbox(make_spec())
    mine = provider.client()
    clients: list[Any] = []
    seen: list[str] = []

    async def elsewhere() -> None:
        clients.append(provider.client())
        for _ in range(20):
            other = await provider.connect(handle.sandbox_id)
            seen.append((await other.commands.run("echo there")).stdout)
        # A handle made on one loop works on another.
        seen.append((await handle.commands.run("echo here")).stdout)
        await provider.shutdown_current_loop_resources()

    thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
    thread.start()
    for _ in range(20):
        assert (await handle.commands.run("echo mine")).stdout == "mine\n"
    await asyncio.to_thread(thread.join, 60)
    assert seen == ["there\n"] * 20 + ["here\n"]
    assert clients[0] is not mine
    # The other loop's shutdown did not touch this one.
    assert provider.client() is mine
    assert (await handle.commands.run("echo mine")).stdout == "mine\n"


async def test_loops_that_ended_without_a_shutdown_do_not_pile_up(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    handle = await provider.create_sandbox(make_spec())
    kept: list[weakref.ref[Any]] = []

    async def careless() -> None:
        await provider.probe(handle.sandbox_id)
        kept.append(weakref.ref(provider.client()))

    for _ in range(3):
        await asyncio.to_thread(lambda: asyncio.run(careless()))
    for _ in range(5):
        gc.collect()
    assert [client() is None for client in kept] == [True, True, False]


async def test_shutdown_can_be_repeated_and_used_after(
    provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    await provider.shutdown_current_loop_resources()
    await provider.create_sandbox(make_spec())
    await provider.shutdown_current_loop_resources()
    await provider.shutdown_current_loop_resources()
    assert (await provider.probe("nothing")).probe_status == "NOT_FOUND"
