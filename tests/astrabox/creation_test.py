# SPDX-License-Identifier: Apache-2.0
"""create_sandbox: what is sent, what is refused, what is set up."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from astrabox.common.utils.errors import APIError
from astrabox.seams.egress_credentials import SandboxEgressCredentialPlan
from astrabox.seams.sandbox import SandboxCreateSpec, SandboxNetworkPolicy
from astrabox_sandbox_bridge import labels
from astrabox_sandbox_bridge.client import v1
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider, creation

from conftest import INSTALLATION, Providers
from fake_bridge import FakeBridge, Upstream

pytestmark = pytest.mark.asyncio

Specs = Callable[..., SandboxCreateSpec]
COMPOSITE = "agent-runtime:2f1c9a5e-0000-4000-8000-000000000000:" + "x" * 80


async def refusal(provider: SandboxBridgeProvider, spec: SandboxCreateSpec) -> APIError:
    with pytest.raises(APIError) as caught:
        await provider.create_sandbox(spec)
    return caught.value


# --- what is sent ---------------------------------------------------------------------------------


async def test_the_whole_spec_is_sent(
    bridge: FakeBridge, make_provider: Providers, make_spec: Specs
) -> None:
    provider = make_provider(LEASE_SECONDS="7200", READY_TIMEOUT_SECONDS="90")
    handle = await provider.create_sandbox(
        make_spec(
            image="registry.example/agent@sha256:0",
            entrypoint=("/bin/boot", "--flag"),
            env={"A": "1", "B": "with $dollar and\nnewline", "EMPTY": ""},
            metadata={"astrabox.storage-assignment": "s1", "note": "any length " * 40},
            workspace_mounts=(("/workspace", "agents/1"), ("/cache", "")),
            workspace_volume="volume-1",
            workspace_volume_create_if_missing=False,
            publish_ports=(8000,),
            death_callback_url="http://example/dead",
        )
    )
    (request,) = bridge.asked("CreateSandbox")
    spec = request.spec
    assert handle.sandbox_id == "box-1"
    assert spec.image == "registry.example/agent@sha256:0"
    assert list(spec.entrypoint) == ["/bin/boot", "--flag"]
    # Verbatim, and nothing of our own.
    assert [(e.name, e.value) for e in spec.env] == [
        ("A", "1"),
        ("B", "with $dollar and\nnewline"),
        ("EMPTY", ""),
    ]
    # Kept apart.
    assert dict(spec.resource_limits) == {"cpu": "4", "memory": "4Gi"}
    assert dict(spec.resource_requests) == {"cpu": "200m", "memory": "768Mi"}
    assert spec.ttl.seconds == 7200
    assert request.ready_timeout.seconds == 90
    assert [(v.name, v.mount_path, v.sub_path, v.named.claim) for v in spec.volumes] == [
        ("astrabox-workspace-0", "/workspace", "agents/1", "volume-1"),
        ("astrabox-workspace-1", "/cache", "", "volume-1"),
    ]
    assert not spec.volumes[0].named.create_if_missing
    assert not spec.volumes[0].named.delete_with_sandbox
    assert not spec.volumes[0].read_only
    assert not spec.HasField("network_policy")
    assert dict(spec.extensions) == {}
    assert all(len(value) <= 63 for value in spec.metadata.values())
    restored = labels.restore(spec.metadata)
    assert restored["note"] == "any length " * 40
    assert restored["astrabox.session-id"] == "session-1"
    assert restored["astrabox.assignment-id"] == "assignment-1"
    assert restored["astrabox.managed-by"] == "astrabox"
    assert restored["astrabox.installation"] == INSTALLATION


async def test_the_deadline_leaves_time_to_get_ready(
    bridge: FakeBridge, make_provider: Providers, make_spec: Specs
) -> None:
    """A create that is given up earlier leaks a sandbox of which nobody knows the id."""
    await make_provider(READY_TIMEOUT_SECONDS="77").create_sandbox(make_spec())
    assert bridge.asked("CreateSandbox")[0].ready_timeout.seconds == 77
    assert bridge.time_left["CreateSandbox"] > 77 + 15


async def test_defaults_of_the_deployment(
    bridge: FakeBridge, make_provider: Providers, make_spec: Specs
) -> None:
    provider = make_provider(ENTRYPOINT="/sbin/init --quiet", SECURE_ACCESS="true")
    await provider.create_sandbox(make_spec())
    spec = bridge.asked("CreateSandbox")[0].spec
    assert spec.image == "example/agent:1"
    assert list(spec.entrypoint) == ["/sbin/init", "--quiet"]
    assert spec.ttl.seconds == 14400
    assert spec.secure_access


async def test_composite_ids_of_any_length(
    provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    spec = make_spec(session_id=COMPOSITE, assignment_id=COMPOSITE + ":2")
    handle = await provider.create_sandbox(spec)
    found = await provider.find_sandbox_by_assignment(COMPOSITE + ":2")
    assert found is not None
    assert (found.sandbox_id, found.session_id) == (handle.sandbox_id, COMPOSITE)
    assert await provider.find_sandbox_by_assignment(COMPOSITE + ":3") is None
    claim = await provider.claim_of(handle.sandbox_id, expected_session_id=COMPOSITE)
    assert claim.may_destroy


async def test_network_policy_is_sent(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    policy = SandboxNetworkPolicy("limited", ("pypi.org", "*.example.com"))
    await provider.create_sandbox(make_spec(network_policy=policy))
    sent = bridge.asked("CreateSandbox")[0].spec.network_policy
    assert sent.default_action == v1.NetworkPolicy.ACTION_DENY
    assert [(r.action, r.target) for r in sent.rules] == [
        (v1.NetworkPolicy.ACTION_DENY, "169.254.0.0/16"),
        (v1.NetworkPolicy.ACTION_ALLOW, "pypi.org"),
        (v1.NetworkPolicy.ACTION_ALLOW, "*.example.com"),
    ]


# --- what is refused, before anything is allocated ------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code", "status"),
    [
        ({"entrypoint": ()}, "SANDBOX_CONFIG_INVALID", 400),
        ({"entrypoint": ("a", " ")}, "SANDBOX_CONFIG_INVALID", 400),
        ({"env": {"OPENSANDBOX_EGRESS_MODE": "off"}}, "SANDBOX_CONFIG_INVALID", 400),
        ({"metadata": {"astrabox.managed-by": "me"}}, "SANDBOX_CONFIG_INVALID", 400),
        ({"metadata": {"astrabox.network-wiring": "x"}}, "SANDBOX_CONFIG_INVALID", 400),
        ({"permission_level": "privileged"}, "UNSUPPORTED_SANDBOX_PERMISSION_LEVEL", 409),
        ({"permission_level": "unheard-of"}, "UNSUPPORTED_SANDBOX_PERMISSION_LEVEL", 409),
        ({"credential_proxy_enabled": True}, "SANDBOX_CONFIG_INVALID", 400),
        (
            {"vault_write": SandboxEgressCredentialPlan(model=("x",))},
            "SANDBOX_CONFIG_INVALID",
            400,
        ),
        ({"workspace_mounts": (("/w", "s"),)}, "SANDBOX_CONFIG_INVALID", 400),
        ({"cwd": "srv/relative"}, "SANDBOX_CONFIG_INVALID", 400),
        ({"cwd": "~/home"}, "SANDBOX_CONFIG_INVALID", 400),
        ({"cwd": "/with\0nul"}, "SANDBOX_CONFIG_INVALID", 400),
        ({"cwd": "/half/\ud800"}, "SANDBOX_CONFIG_INVALID", 400),
        ({"env": {"A": "half \ud800"}}, "SANDBOX_CONFIG_INVALID", 400),
        ({"image": "half:\ud800"}, "SANDBOX_CONFIG_INVALID", 400),
        ({"wait_for_inbox_service_port": 0}, "SANDBOX_CONFIG_INVALID", 400),
        ({"wait_for_inbox_service_port": 65536}, "SANDBOX_CONFIG_INVALID", 400),
        ({"session_id": ""}, "SANDBOX_CONFIG_INVALID", 400),
        ({"assignment_id": ""}, "SANDBOX_CONFIG_INVALID", 400),
    ],
)
async def test_refused_before_anything_is_sent(
    bridge: FakeBridge,
    provider: SandboxBridgeProvider,
    make_spec: Specs,
    fields: dict[str, Any],
    code: str,
    status: int,
) -> None:
    error = await refusal(provider, make_spec(**fields))
    assert (error.code, error.status_code) == (code, status)
    assert bridge.asked("CreateSandbox") == []


async def test_an_empty_vault_plan_is_nothing_to_refuse(
    provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    await provider.create_sandbox(make_spec(vault_write=SandboxEgressCredentialPlan()))


async def test_no_image_is_refused_by_name(
    environment: pytest.MonkeyPatch,
    bridge: FakeBridge,
    provider: SandboxBridgeProvider,
    make_spec: Specs,
) -> None:
    environment.delenv("ASTRABOX_SANDBOX_BRIDGE_IMAGE")
    error = await refusal(provider, make_spec())
    assert "ASTRABOX_SANDBOX_BRIDGE_IMAGE" in error.message
    assert bridge.asked("CreateSandbox") == []


async def test_a_host_in_a_denied_range_is_refused(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    for host in ("169.254.169.254", "169.254.1.0/24", "0.0.0.0/0"):
        policy = SandboxNetworkPolicy("limited", (host,))
        with pytest.raises(ValueError, match=r"169\.254\.0\.0/16"):
            await provider.create_sandbox(make_spec(network_policy=policy))
    assert bridge.asked("CreateSandbox") == []


async def test_what_the_backend_lacks_is_refused(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    bridge.capabilities = {"sandboxes.network_policy": False, "sandboxes.volumes": False}
    limited = make_spec(network_policy=SandboxNetworkPolicy("limited"))
    assert "network policy" in (await refusal(provider, limited)).message
    mounts = make_spec(workspace_mounts=(("/w", ""),), workspace_volume="v")
    assert "volumes" in (await refusal(provider, mounts)).message
    assert bridge.asked("CreateSandbox") == []


async def test_unrestricted_without_denied_addresses_needs_no_policy(
    bridge: FakeBridge, make_provider: Providers, make_spec: Specs
) -> None:
    bridge.capabilities = {"sandboxes.network_policy": False}
    provider = make_provider(EGRESS_DENY_CIDRS="")
    await provider.create_sandbox(make_spec(network_policy=SandboxNetworkPolicy("unrestricted")))
    assert not bridge.asked("CreateSandbox")[0].spec.HasField("network_policy")


async def test_unset_address_is_told_by_name(
    environment: pytest.MonkeyPatch, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    environment.delenv("ASTRABOX_SANDBOX_BRIDGE_ADDRESS")
    error = await refusal(provider, make_spec())
    assert (error.code, error.status_code) == ("SANDBOX_CONFIG_INVALID", 500)
    assert "ASTRABOX_SANDBOX_BRIDGE_ADDRESS" in error.message


# --- set-up inside the sandbox --------------------------------------------------------------------


async def test_cwd_is_made(
    provider: SandboxBridgeProvider, make_spec: Specs, tmp_path: Any
) -> None:
    handle = await provider.create_sandbox(make_spec(cwd=f"{tmp_path}/a/b"))
    assert (await handle.commands.run(f"test -d {tmp_path}/a/b")).exit_code == 0


async def test_waits_for_the_port_inside(
    provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    # Bound and not listening yet: the wait must not take that for ready.
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    port = held.getsockname()[1]
    creating = asyncio.create_task(
        provider.create_sandbox(make_spec(wait_for_inbox_service_port=port))
    )
    done, _ = await asyncio.wait({creating}, timeout=0.7)
    assert not done
    server = await asyncio.start_server(accept, sock=held)
    handle = await asyncio.wait_for(creating, 20)
    assert handle.sandbox_id in upstream.sandboxes
    server.close()


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("with_grep", [True, False])
async def test_the_wait_needs_no_more_than_a_shell_and_sleep(
    tmp_path: Path, shell: str, with_grep: bool
) -> None:
    for tool in (shell, "sleep", *(["grep"] if with_grep else [])):
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / tool).symlink_to(found)
    # Not the kernel's own, which has thousands of lines on a busy machine, and no table for IPv6.
    table, line = tmp_path / "tcp", "   1: 0100007F:1F40 0100007F:C350 {} 00000000:00000000\n"
    table.write_text("  sl  local_address rem_address   st\n" + line.format("01"))
    script = creation._WAIT_FOR_PORT.format(port=8000).replace("/proc/net/", f"{tmp_path}/")
    waiting = await asyncio.create_subprocess_exec(
        tmp_path / shell, "-c", script, env={"PATH": str(tmp_path)}, stderr=asyncio.subprocess.PIPE
    )
    # Connected is not listening.
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(waiting.wait()), 0.5)
    (tmp_path / "new").write_text(table.read_text() + line.format("0A"))
    (tmp_path / "new").rename(table)
    _, said = await asyncio.wait_for(waiting.communicate(), 60)
    assert (waiting.returncode, said) == (0, b"")


async def test_a_port_that_never_listens_destroys_the_sandbox(
    make_provider: Providers, make_spec: Specs, upstream: Upstream
) -> None:
    provider = make_provider(PORT_TIMEOUT_SECONDS="0.5")
    error = await refusal(provider, make_spec(wait_for_inbox_service_port=1))
    assert "port 1" in error.message
    assert upstream.sandboxes == {}
    assert upstream.deleted == ["box-1"]
    assert error.data is None


async def test_the_command_channel_is_proven(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    await provider.create_sandbox(make_spec(requires_command_channel=True))
    assert [r.spec.shell for r in bridge.asked("Execute")] == ["true"]
    bridge.fail("Execute", "SANDBOX_UNREACHABLE", "no route to the daemon")
    error = await refusal(
        provider, make_spec(requires_command_channel=True, assignment_id="assignment-2")
    )
    assert (error.code, error.status_code) == ("AGENT_RUNTIME_ERROR", 502)
    assert "no route" in error.message
    assert upstream.deleted == ["box-2"]


async def test_advanced_is_proven_by_the_sandbox(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    await provider.learn_capabilities()
    await provider.create_sandbox(make_spec(permission_level="advanced"))
    sent = bridge.asked("CreateSandbox")[0].spec
    assert dict(sent.extensions) == {"bootstrap.execd.isolation": "enable"}
    bridge.fail("GetIsolation", "UNSUPPORTED_FEATURE", "this daemon isolates nothing")
    error = await refusal(
        provider, make_spec(permission_level="advanced", assignment_id="assignment-2")
    )
    assert error.status_code in (409, 501)
    assert upstream.deleted == ["box-2"]


async def test_a_survivor_of_a_failed_set_up_is_named(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    bridge.fail("Execute", "SANDBOX_UNREACHABLE")
    bridge.fail("DeleteSandbox", "UPSTREAM_UNAVAILABLE", times=5)
    error = await refusal(provider, make_spec(requires_command_channel=True))
    assert error.data == {"sandbox_id": "box-1", "leaked_sandbox_id": "box-1"}
    assert error.code == "AGENT_RUNTIME_ERROR"
