# SPDX-License-Identifier: Apache-2.0
"""What the bridge says that it can is what happens, on the local OpenSandbox."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import SandboxCreateSpec, SandboxNetworkPolicy
from astrabox_sandbox_bridge.client import BridgeError, v1
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider

from conftest import Providers
from real_bridge import LocalOpenSandbox, RealBridge

pytestmark = pytest.mark.asyncio

Specs = Callable[..., SandboxCreateSpec]


@pytest_asyncio.fixture
async def live(make_provider: Providers) -> AsyncIterator[SandboxBridgeProvider]:
    with LocalOpenSandbox() as upstream, RealBridge(upstream.place) as bridge:
        provider = make_provider(ADDRESS=bridge.place)
        yield provider
        for box in (await provider.list_sandboxes(page_size=200)).items:
            await provider.kill(box.sandbox_id)


@pytest.fixture
def specs(make_spec: Specs) -> Specs:
    def make(**fields: Any) -> SandboxCreateSpec:
        defaults = {
            "image": "debian:12",
            "entrypoint": ("tail", "-f", "/dev/null"),
            "resource_limits": {"cpu": "1", "memory": "1Gi"},
            "assignment_id": os.urandom(8).hex(),
        }
        return make_spec(**(defaults | fields))

    return make


async def test_what_the_bridge_says_it_can_is_what_happens(
    live: SandboxBridgeProvider, specs: Specs
) -> None:
    """Each feature is told and tried; where it is left open, the sandbox tells."""
    handle = await live.create_sandbox(specs())
    box = handle.sandbox_id
    levels = {
        row.feature: row.level for row in (await live.client().bridge.capabilities()).capabilities
    }
    of_box = {
        row.feature: row.level
        for row in (await live.client().bridge.capabilities(box)).capabilities
    }
    full, none, unknown = (
        v1.Capability.LEVEL_FULL,
        v1.Capability.LEVEL_NONE,
        v1.Capability.LEVEL_UNSPECIFIED,
    )
    assert levels["processes"] == levels["isolation"] == unknown

    assert levels["sandboxes.pause"] == full
    assert live.supports_pause
    assert await live.pause(box)
    assert await live.resume(box)

    assert levels["sandboxes.volumes"] == full
    mounts = {"workspace_volume": "vol-capabilities", "workspace_mounts": (("/kept", "a"),)}
    first = await live.create_sandbox(specs(**mounts))
    await first.files.write_file("/kept/f", b"kept", mode=0o600)
    assert await live.kill(first.sandbox_id)
    second = await live.create_sandbox(specs(**mounts))
    assert await second.files.read_bytes("/kept/f") == b"kept"

    # Not told by a server on Docker; this one's create tells.
    assert levels["sandboxes.network_policy"] == unknown
    with pytest.raises(APIError):
        await live.create_sandbox(specs(network_policy=SandboxNetworkPolicy("limited")))

    assert levels["sandboxes.snapshots"] == none
    with pytest.raises(BridgeError, match="UNSUPPORTED_FEATURE"):
        await live.client().sandboxes.create_snapshot(box, "s")

    assert of_box["processes"] == full
    processes: Any = handle.processes
    held = await processes.attach(await processes.create(command="echo on; cat"))
    assert await anext(held.output()) == (0, b"on\n")
    await held.close()

    assert of_box["isolation"] == none
    assert not (await live.read_isolation_capability(box)).available
    for refused in (
        live.open_isolated_session(box, workspace_dir="/tmp", workspace_source_dir="/tmp"),  # noqa: S108
        live.count_active_isolated_sessions(box),
        live.run_in_isolated_session(box, "x", code="true"),
    ):
        with pytest.raises(APIError, match="SANDBOX_ISOLATION_UNSUPPORTED"):
            await refused


async def test_an_embedded_upstream_knows_itself(make_provider: Providers, specs: Specs) -> None:
    with RealBridge() as bridge:
        provider = await asyncio.to_thread(
            make_provider, ADDRESS=bridge.place, START_TIMEOUT_SECONDS="10"
        )
        assert not provider.supports_create_network_policy
        assert provider.supports_pause
        assert provider.workspace_route() is not None
