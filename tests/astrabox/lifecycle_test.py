# SPDX-License-Identifier: Apache-2.0
"""A sandbox by its id: binding, destruction, looks, lease, pause, ownership."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from astrabox.common.utils.errors import APIError
from astrabox.seams import _sandbox_types, sandbox
from astrabox.seams.sandbox import SandboxCreateSpec
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider

from conftest import Providers
from conftest import api_failure as failure
from fake_bridge import FakeBridge, Upstream

pytestmark = pytest.mark.asyncio

Specs = Callable[..., SandboxCreateSpec]
# Of the upstream → the platform's.
STATES = {
    "Pending": "pending",
    "Running": "running",
    "Pausing": "pausing",
    "Paused": "paused",
    "Resuming": "resuming",
    "Stopping": "stopping",
    "Terminated": "terminated",
    "Failed": "failed",
    "Allocated": "allocated",
}


# --- connect --------------------------------------------------------------------------------------


async def test_connect_to_a_running_one(provider: SandboxBridgeProvider, box: str) -> None:
    handle = await provider.connect(box)
    assert isinstance(handle, sandbox.SandboxHandle)
    assert provider.owns_sandbox(handle)
    assert not provider.owns_sandbox(object())
    assert not hasattr(handle, "sandbox")
    await handle.close()
    await handle.close()
    assert (await provider.probe(box)).probe_status == "OK"


@pytest.mark.parametrize("state", [s for s in STATES if s != "Running"])
async def test_anything_but_running_is_gone(
    provider: SandboxBridgeProvider, upstream: Upstream, box: str, state: str
) -> None:
    upstream.set_state(box, state)
    error = await failure(provider.connect(box))
    assert (error.code, error.status_code) == ("SANDBOX_GONE", 404)
    assert STATES[state] in error.message


async def test_a_missing_one_is_gone(provider: SandboxBridgeProvider) -> None:
    error = await failure(provider.connect("nothing"))
    assert (error.code, error.status_code) == ("SANDBOX_GONE", 404)


@pytest.mark.parametrize(
    "reason", ["UPSTREAM_UNAVAILABLE", "UPSTREAM_TIMEOUT", "NOT_YOUR_SANDBOX", "INTERNAL"]
)
async def test_what_cannot_be_asked_is_not_gone(
    bridge: FakeBridge, provider: SandboxBridgeProvider, box: str, reason: str
) -> None:
    bridge.fail("GetSandbox", reason)
    error = await failure(provider.connect(box))
    assert (error.code, error.status_code) == ("AGENT_RUNTIME_ERROR", 502)


async def test_one_with_old_addresses_is_gone(
    environment: pytest.MonkeyPatch, provider: SandboxBridgeProvider, box: str
) -> None:
    described = await provider.describe_sandbox(box)
    assert provider.created_with_current_network_wiring(described)
    environment.setenv("ASTRABOX_MCP_PROXY_BASE_URL", "http://moved:1")
    assert not provider.created_with_current_network_wiring(described)
    assert (await failure(provider.connect(box))).code == "SANDBOX_GONE"


async def test_one_of_another_origin_has_no_addresses_to_compare(
    provider: SandboxBridgeProvider, upstream: Upstream, box: str
) -> None:
    del upstream.sandboxes[box].sandbox.metadata["astrabox.network-wiring"]
    described = await provider.describe_sandbox(box)
    assert provider.created_with_current_network_wiring(described)
    await provider.connect(box)


# --- destruction ----------------------------------------------------------------------------------


async def test_kill_is_true_only_with_proof(
    provider: SandboxBridgeProvider, upstream: Upstream, box: str
) -> None:
    upstream.sandboxes[box].immortal = True
    assert await provider.kill(box) is False
    upstream.sandboxes[box].immortal = False
    assert await provider.kill(box) is True
    assert await provider.kill(box) is True


@pytest.mark.parametrize("reason", ["CONFLICT", "UPSTREAM_FAILED"])
async def test_a_refused_kill_is_false(
    bridge: FakeBridge, provider: SandboxBridgeProvider, box: str, reason: str
) -> None:
    bridge.fail("DeleteSandbox", reason, "sandbox not in normal state")
    assert await provider.kill(box) is False


async def test_a_kill_that_cannot_be_asked_raises(
    bridge: FakeBridge, provider: SandboxBridgeProvider, box: str
) -> None:
    bridge.fail("DeleteSandbox", "UPSTREAM_UNAVAILABLE")
    assert (await failure(provider.kill(box))).status_code == 502


async def test_the_platforms_judgement(
    bridge: FakeBridge,
    provider: SandboxBridgeProvider,
    upstream: Upstream,
    box: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_sandbox_types, "DESTRUCTION_SETTLE_BUDGET_S", 0.05)
    monkeypatch.setattr(_sandbox_types, "DESTRUCTION_SETTLE_INTERVAL_S", 0.01)
    assert (await provider.confirm_destroyed("")).outcome == "NOTHING_NAMED"
    upstream.sandboxes[box].immortal = True
    assert (await provider.confirm_destroyed(box)).leaked_sandbox_id == box
    bridge.fail("ProbeSandbox", "UPSTREAM_TIMEOUT")
    assert (await provider.confirm_destroyed(box)).outcome == "UNCONFIRMED"
    upstream.sandboxes[box].immortal = False
    assert (await provider.confirm_destroyed(box)).confirmed
    # A kill that raised, and a second look that proves it gone all the same.
    bridge.fail("DeleteSandbox", "UPSTREAM_UNAVAILABLE")
    assert (await provider.confirm_destroyed(box)).confirmed


# --- looks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "word"), STATES.items())
async def test_probe_tells_the_state_in_the_platforms_words(
    provider: SandboxBridgeProvider, upstream: Upstream, box: str, state: str, word: str
) -> None:
    upstream.set_state(box, state)
    seen = await provider.probe(box)
    assert (seen.probe_status, seen.sandbox_state, seen.error_text) == ("OK", word, None)


async def test_probe_of_nothing(provider: SandboxBridgeProvider) -> None:
    seen = await provider.probe("nothing")
    assert (seen.probe_status, seen.sandbox_state) == ("NOT_FOUND", None)


@pytest.mark.parametrize("reason", ["UPSTREAM_TIMEOUT", "CALLER_UNAUTHENTICATED", "INTERNAL"])
async def test_probe_never_raises(
    bridge: FakeBridge, provider: SandboxBridgeProvider, box: str, reason: str
) -> None:
    bridge.fail("ProbeSandbox", reason)
    seen = await provider.probe(box)
    assert (seen.probe_status, seen.sandbox_state) == ("PROBE_FAILED", None)
    assert reason in (seen.error_text or "")


async def test_probe_without_a_bridge(make_provider: Providers) -> None:
    provider = make_provider(ADDRESS="127.0.0.1:1", CONNECT_TIMEOUT_SECONDS="0.2")
    assert (await provider.probe("x")).probe_status == "PROBE_FAILED"
    provider = make_provider(CONNECT_TIMEOUT_SECONDS="x")
    seen = await provider.probe("x")
    assert "CONNECT_TIMEOUT_SECONDS" in (seen.error_text or "")


async def test_a_silent_daemon_is_told_from_a_running_record(
    provider: SandboxBridgeProvider, upstream: Upstream, box: str
) -> None:
    assert not await provider.data_plane_unreachable(box)
    upstream.sandboxes[box].daemon_answers = False
    assert await provider.data_plane_unreachable(box)
    assert (await provider.probe(box)).sandbox_state == "running"


# --- lease ----------------------------------------------------------------------------------------


async def test_renew_never_shortens(
    bridge: FakeBridge, provider: SandboxBridgeProvider, box: str
) -> None:
    first = await provider.expires_at(box)
    assert first is not None
    assert await provider.renew(box, 60) == first
    longer = await provider.renew(box, 30_000)
    assert longer is not None
    assert longer > first
    assert await provider.expires_at(box) == longer
    assert all(r.never_shorten for r in bridge.asked("SetExpiration"))


async def test_no_lease_is_none_and_no_sandbox_is_an_error(
    provider: SandboxBridgeProvider, upstream: Upstream, box: str
) -> None:
    upstream.sandboxes[box].sandbox.ClearField("expires_at")
    assert await provider.expires_at(box) is None
    assert await provider.renew(box, 600) is None
    for work in (provider.expires_at("nothing"), provider.renew("nothing", 600)):
        error = await failure(work)
        assert (error.code, error.status_code) == ("SANDBOX_NOT_FOUND", 404)


# --- pause ----------------------------------------------------------------------------------------


async def test_pause_and_resume(
    provider: SandboxBridgeProvider, upstream: Upstream, box: str
) -> None:
    handle = await provider.connect(box)
    for _ in range(2):
        assert await provider.pause(box)
        assert upstream.sandboxes[box].sandbox.upstream_state == "Paused"
        assert await provider.resume(box)
        # The same handle goes on: nothing of the endpoint is remembered.
        assert (await handle.commands.run("echo back")).stdout == "back\n"


async def test_accepted_is_not_settled(
    bridge: FakeBridge,
    provider: SandboxBridgeProvider,
    upstream: Upstream,
    box: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from astrabox_sandbox_bridge.client import v1

    from fake_bridge.sandboxes import FakeSandboxes

    async def unsettled(self: Any, request: Any, context: Any) -> v1.PauseSandboxResponse:
        sandbox = upstream.sandboxes[request.sandbox_id].sandbox
        return v1.PauseSandboxResponse(sandbox=sandbox, settled=False)

    monkeypatch.setattr(FakeSandboxes, "PauseSandbox", unsettled)
    async with FakeBridge(upstream) as other:
        monkeypatch.setenv("ASTRABOX_SANDBOX_BRIDGE_ADDRESS", other.address)
        second = SandboxBridgeProvider()
        assert await second.pause(box) is False
        await second.shutdown_current_loop_resources()


async def test_pause_where_the_backend_cannot(
    bridge: FakeBridge, provider: SandboxBridgeProvider, box: str
) -> None:
    bridge.fail("PauseSandbox", "UNSUPPORTED_FEATURE", feature="pause")
    error = await failure(provider.pause(box))
    assert (error.code, error.status_code) == ("SANDBOX_PAUSE_UNSUPPORTED", 501)


# --- ownership ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected", "verdict"),
    [
        ({}, "session-1", "MINE"),
        ({}, "session-2", "FOREIGN"),
        ({}, None, "UNKNOWN"),
        ({"astrabox.installation": "other"}, "session-1", "FOREIGN"),
        ({"astrabox.managed-by": "other"}, "session-1", "FOREIGN"),
        ({"astrabox.installation": None}, "session-1", "UNKNOWN"),
        ({"astrabox.managed-by": None, "astrabox.session-id": None}, "session-1", "UNKNOWN"),
        ({"projected.astrabox/0123456789abcdef.0-2": "damaged"}, "session-1", "UNKNOWN"),
    ],
)
async def test_claims(
    provider: SandboxBridgeProvider,
    upstream: Upstream,
    box: str,
    change: dict[str, str | None],
    expected: str | None,
    verdict: str,
) -> None:
    stored = upstream.sandboxes[box].sandbox.metadata
    for key, value in change.items():
        if value is None:
            del stored[key]
        else:
            stored[key] = value
    claim = await provider.claim_of(box, expected_session_id=expected)
    assert claim.verdict == verdict


async def test_claims_on_what_cannot_be_seen(
    bridge: FakeBridge, provider: SandboxBridgeProvider, box: str
) -> None:
    assert (await provider.claim_of("nothing")).verdict == "UNCLAIMED"
    bridge.fail("GetSandbox", "UPSTREAM_TIMEOUT")
    assert (await provider.claim_of(box)).verdict == "UNKNOWN"


# --- snapshots ------------------------------------------------------------------------------------


async def test_snapshots_are_discarded_before_their_sandbox(
    bridge: FakeBridge, upstream: Upstream, provider: SandboxBridgeProvider, make_spec: Any
) -> None:
    box = (await provider.create_sandbox(make_spec())).sandbox_id
    other = (await provider.create_sandbox(make_spec(assignment_id="other"))).sandbox_id
    for name in ("a", "b", "c"):
        await provider.client().sandboxes.create_snapshot(box, name)
    await provider.client().sandboxes.create_snapshot(other, "kept")
    bridge.fail("DeleteSnapshot", "SNAPSHOT_NOT_FOUND")  # somebody was faster
    assert await provider.discard_snapshots(box) == 3
    assert {s.sandbox_id for s in upstream.snapshots.values()} == {box, other}
    assert await provider.discard_snapshots(box) == 1
    assert await provider.discard_snapshots(box) == 0
    bridge.fail("ListSnapshots", "UNSUPPORTED_FEATURE", feature="sandboxes.snapshots")
    assert await provider.discard_snapshots(box) == 0
    bridge.fail("ListSnapshots", "UPSTREAM_FAILED")
    with pytest.raises(APIError, match="AGENT_RUNTIME_ERROR"):
        await provider.discard_snapshots(box)


# --- a deployment that is not set up, and ids that are no text ------------------------------------

# What answers in words of its own instead: probe() and claim_of().
CONTROL_CALLS: dict[str, Callable[[SandboxBridgeProvider, str], Any]] = {
    "connect": lambda p, box: p.connect(box),
    "kill": lambda p, box: p.kill(box),
    "renew": lambda p, box: p.renew(box, 600),
    "expires_at": lambda p, box: p.expires_at(box),
    "pause": lambda p, box: p.pause(box),
    "resume": lambda p, box: p.resume(box),
    "data_plane_unreachable": lambda p, box: p.data_plane_unreachable(box),
    "discard_snapshots": lambda p, box: p.discard_snapshots(box),
    "describe_sandbox": lambda p, box: p.describe_sandbox(box),
    "read_diagnostics": lambda p, box: p.read_diagnostics(box, scope="logs"),
    "read_security_posture": lambda p, box: p.read_security_posture(box),
    "delete_egress_rules": lambda p, box: p.delete_egress_rules(box, targets=("a.example",)),
    "read_isolation_capability": lambda p, box: p.read_isolation_capability(box),
    "count_active_isolated_sessions": lambda p, box: p.count_active_isolated_sessions(box),
    "close_isolated_session": lambda p, box: p.close_isolated_session(box, "s"),
    "run_in_isolated_session": lambda p, box: p.run_in_isolated_session(box, "s", code="true"),
    "prepare_isolated_workspace": lambda p, box: p.prepare_isolated_workspace(
        box, workspace_dir="/w", uid=1, gid=1
    ),
}


@pytest.mark.parametrize("call", CONTROL_CALLS)
async def test_a_deployment_without_an_address_is_told_so(
    environment: pytest.MonkeyPatch, provider: SandboxBridgeProvider, call: str
) -> None:
    environment.delenv("ASTRABOX_SANDBOX_BRIDGE_ADDRESS")
    error = await failure(CONTROL_CALLS[call](provider, "box-1"))
    assert (error.code, error.status_code) == ("SANDBOX_CONFIG_INVALID", 500)
    assert "ASTRABOX_SANDBOX_BRIDGE_ADDRESS" in error.message


@pytest.mark.parametrize("call", CONTROL_CALLS)
async def test_an_id_that_is_no_text_is_refused(provider: SandboxBridgeProvider, call: str) -> None:
    error = await failure(CONTROL_CALLS[call](provider, "box-\ud800"))
    assert (error.code, error.status_code) == ("SANDBOX_CONFIG_INVALID", 400)


async def test_a_look_at_an_id_that_is_no_text_sees_nothing(
    provider: SandboxBridgeProvider,
) -> None:
    assert (await provider.probe("box-\ud800")).probe_status == "PROBE_FAILED"
    assert (await provider.claim_of("box-\ud800")).verdict == "UNKNOWN"
