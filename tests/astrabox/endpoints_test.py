# SPDX-License-Identifier: Apache-2.0
"""Addresses of a sandbox, and its persistent workspace."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from astrabox.seams.sandbox import SandboxCreateSpec
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider

from conftest import Providers
from conftest import api_failure as failure
from fake_bridge import FakeBridge, Upstream

pytestmark = pytest.mark.asyncio

Specs = Callable[..., SandboxCreateSpec]


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "named"),
    [
        ("http://h:1/sandboxes/box-1/proxy/8000", "box-1"),
        ("https://h/v1/sandboxes/ab.c_d-1/proxy/8000/path?q", "ab.c_d-1"),
        ("h:1/sandboxes/box-1/proxy/44772", "box-1"),
        ("http://10.0.0.1:8000", None),
        ("http://10.0.0.1:44772/proxy/8000", None),
        ("http://h:1/sandboxes/box-1/proxy/", None),
        ("http://h:1/sandboxes//proxy/8000", None),
        ("http://h:1/sandboxes/../proxy/8000", None),
        ("", None),
    ],
)
async def test_endpoints_that_name_their_sandbox(
    provider: SandboxBridgeProvider, endpoint: str, named: str | None
) -> None:
    assert provider.endpoint_names_sandbox(endpoint) == named


async def test_endpoints_have_url_and_headers(
    bridge: FakeBridge, make_provider: Providers, box: str
) -> None:
    for route in ("default", "direct", "server_proxy"):
        handle = await make_provider(ENDPOINT_ROUTE=route).connect(box)
        found = await handle.get_endpoint(8000)
        assert found.url == "http://127.0.0.1:8000/p"
        assert dict(found.headers) == {"X-Route": f"secret-of-{box}"}
    assert [r.route for r in bridge.asked("GetEndpoint")] == [0, 1, 2]


async def test_signed_endpoints(
    bridge: FakeBridge, provider: SandboxBridgeProvider, box: str
) -> None:
    handle = await provider.connect(box)
    until = datetime(2030, 1, 2, 3, 4, 5, 999_000)
    for moment in (until, until.replace(tzinfo=UTC)):
        found = await handle.get_signed_endpoint(8000, expires_at=moment)
        assert (
            found.url
            == f"http://127.0.0.1:8000/signed/{int(moment.replace(tzinfo=UTC).timestamp())}/"
        )
    error = await failure(handle.get_signed_endpoint(8080, expires_at=until))
    assert (error.code, error.status_code) == ("EXPOSE_PORT_RESERVED", 400)
    bridge.fail("CreateSignedEndpoint", "SIGNED_ENDPOINT_UNSUPPORTED")
    error = await failure(handle.get_signed_endpoint(8000, expires_at=until))
    assert (error.code, error.status_code) == ("SANDBOX_SIGNED_ENDPOINT_UNSUPPORTED", 501)


async def test_no_address_is_kept(
    bridge: FakeBridge, provider: SandboxBridgeProvider, box: str
) -> None:
    """A resumed sandbox has others, and signed ones expire."""
    handle = await provider.connect(box)
    until = datetime(2030, 1, 2, tzinfo=UTC)
    for count in (1, 2):
        await handle.get_endpoint(8000)
        await handle.get_signed_endpoint(8000, expires_at=until)
        assert len(bridge.asked("GetEndpoint")) == count
        assert len(bridge.asked("CreateSignedEndpoint")) == count


@pytest.mark.parametrize("port", [0, -1, 65536])
async def test_bad_ports_are_refused(provider: SandboxBridgeProvider, box: str, port: int) -> None:
    handle = await provider.connect(box)
    assert (await failure(handle.get_endpoint(port))).status_code == 400


async def test_another_sandbox_under_the_same_id_is_gone(
    provider: SandboxBridgeProvider, upstream: Upstream, box: str
) -> None:
    handle = await provider.connect(box)
    upstream.sandboxes[box].sandbox.incarnation = "another"
    assert (await failure(handle.get_endpoint(8000))).code == "SANDBOX_GONE"
    with pytest.raises(Exception, match="STALE_INCARNATION"):
        await handle.commands.run("true")


async def test_workspaces_are_offered_where_volumes_are_mounted(
    bridge: FakeBridge, make_provider: Providers, environment: pytest.MonkeyPatch
) -> None:
    provider = make_provider()
    assert provider.workspace_route() is None  # nobody has said
    await provider.learn_capabilities()
    assert provider.workspace_route() is not None
    bridge.capabilities = {"sandboxes.volumes": False}
    provider = make_provider()
    await provider.learn_capabilities()
    assert provider.workspace_route() is None
    environment.setenv("ASTRABOX_SANDBOX_BRIDGE_WORKSPACE_MOUNTS", "true")
    assert provider.workspace_route() is not None


async def test_a_workspace_belongs_to_its_user(
    provider: SandboxBridgeProvider, box: str, tmp_path: Any
) -> None:
    from astrabox.seams.storage import StorageMountPlan, WorkspaceRef
    from astrabox_sandbox_bridge.provider.workspace import DirectWorkspaceRoute

    route = DirectWorkspaceRoute()
    route.validate_configuration()
    backing = StorageMountPlan("volume-1", (("/w", "agents/1"),))
    assert await route.provision_mounts("a", backing, sandbox_backend="sandbox_bridge") == backing
    place = f"{tmp_path}/w"
    handle = await provider.connect(box)
    for _ in range(2):  # existing or not
        await route.prepare(
            WorkspaceRef("agent", "1"), box=handle, box_path=place, owner="games", group="games"
        )
        ran = await handle.commands.run(f"stat -c '%U %G %a' {place}; chmod 755 {place}")
        assert ran.stdout == "games games 700\n"
    assert await route.attached_mounts() == []
