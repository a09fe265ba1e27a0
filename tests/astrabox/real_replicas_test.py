# SPDX-License-Identifier: Apache-2.0
"""Bridges that come and go under the provider: any replica serves any sandbox, and one that is
killed takes nothing with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from astrabox.seams.sandbox_data import SandboxUnreachable

from conftest import Providers, Specs
from real_bridge import RealBridge

pytestmark = pytest.mark.asyncio


async def test_any_replica_and_one_that_is_killed(
    opensandbox: Any, make_provider: Providers, specs: Specs
) -> None:
    """A process, a file and a sandbox outlive the bridge that made them."""
    with RealBridge(opensandbox.place) as one, RealBridge(opensandbox.place) as two:
        first = make_provider(ADDRESS=one.place)
        handle = await first.create_sandbox(specs(session_id="s"))
        processes: Any = handle.processes
        name = await processes.create(command="echo ready; cat")
        held = await processes.attach(name)
        assert await anext(held.output()) == (0, b"ready\n")
        running = asyncio.create_task(handle.commands.run("sleep 60"))
        await asyncio.sleep(0.5)
        one.kill()
        with pytest.raises(SandboxUnreachable):
            await running

        second = make_provider(ADDRESS=two.place)
        other = await second.connect(handle.sandbox_id)
        theirs: Any = other.processes
        held = await theirs.attach(name, since=6)
        await held.write(b"still here\n")
        assert await anext(held.output()) == (6, b"still here\n")
        await held.close()
        assert await second.kill(handle.sandbox_id)


async def test_a_bridge_that_restarts_mid_conversation(
    opensandbox: Any, make_provider: Providers, specs: Specs
) -> None:
    bridge = RealBridge(opensandbox.place)
    try:
        provider = make_provider(ADDRESS=bridge.place)
        spec = specs()
        handle = await provider.create_sandbox(spec)
        bridge.kill()
        # What is sent at the moment in which the connection dies is asked again if it only looks; a
        # command may have run, and waits only where nobody is known to listen.
        looking = asyncio.create_task(provider.find_sandbox_by_assignment(spec.assignment_id))
        await asyncio.sleep(0.3)
        waiting = asyncio.create_task(handle.commands.run("echo back"))
        port = int(bridge.place.rpartition(":")[2])
        bridge = await asyncio.to_thread(RealBridge, opensandbox.place, port=port)
        assert (await asyncio.wait_for(waiting, 30)).stdout == "back\n"
        found = await asyncio.wait_for(looking, 30)
        assert found is not None
        assert found.sandbox_id == handle.sandbox_id
        assert await provider.kill(handle.sandbox_id)
    finally:
        bridge.stop()


async def test_a_bridge_killed_during_create_makes_no_second_sandbox(
    opensandbox: Any, make_provider: Providers, specs: Specs
) -> None:
    bridge = RealBridge(opensandbox.place)
    try:
        provider = make_provider(ADDRESS=bridge.place, CONNECT_TIMEOUT_SECONDS="30")
        spec = specs(session_id="interrupted")
        creating = asyncio.create_task(provider.create_sandbox(spec))
        await asyncio.sleep(0.1)
        bridge.kill()
        port = int(bridge.place.rpartition(":")[2])
        bridge = await asyncio.to_thread(RealBridge, opensandbox.place, port=port)
        handle = await asyncio.wait_for(creating, 60)
        found = await provider.find_sandbox_by_assignment(spec.assignment_id)
        assert found is not None
        assert found.sandbox_id == handle.sandbox_id
        assert await provider.kill(handle.sandbox_id)
    finally:
        bridge.stop()
