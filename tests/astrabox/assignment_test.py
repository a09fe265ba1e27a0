# SPDX-License-Identifier: Apache-2.0
"""create_sandbox: one assignment has one sandbox, and nothing is left behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import SandboxCreateSpec
from astrabox_sandbox_bridge import labels
from astrabox_sandbox_bridge.client import v1
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider

from conftest import INSTALLATION, Providers
from fake_bridge import FakeBridge, Upstream
from fake_bridge.errors import Fault

pytestmark = pytest.mark.asyncio

Specs = Callable[..., SandboxCreateSpec]


async def refusal(provider: SandboxBridgeProvider, spec: SandboxCreateSpec) -> APIError:
    with pytest.raises(APIError) as caught:
        await provider.create_sandbox(spec)
    return caught.value


# --- one assignment, one sandbox ------------------------------------------------------------------


async def test_a_repeated_assignment_gets_its_sandbox_back(
    provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    first = await provider.create_sandbox(make_spec(env={"TOKEN": "1"}))
    same = await provider.create_sandbox(make_spec(env={"TOKEN": "1"}))
    # What differs from one attempt to the next does not make a second sandbox.
    other = await provider.create_sandbox(make_spec(env={"TOKEN": "2"}))
    assert first.sandbox_id == same.sandbox_id == other.sandbox_id
    assert len(upstream.sandboxes) == 1


async def test_another_owner_of_the_assignment_is_a_conflict(
    provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    await provider.create_sandbox(make_spec())
    error = await refusal(provider, make_spec(session_id="session-2"))
    assert (error.code, error.status_code) == ("SANDBOX_ASSIGNMENT_CONFLICT", 409)
    assert list(upstream.sandboxes) == ["box-1"]


@pytest.mark.parametrize(
    ("change", "env"),
    [
        ("Paused", {}),
        ("Failed", {}),
        ("Allocated", {}),
        ("Paused", {"NEW": "1"}),
        ("Terminated", {}),
        ("silent", {}),
        ("Failed", {"NEW": "1"}),
        ("silent", {"NEW": "1"}),
    ],
)
async def test_an_unusable_sandbox_of_the_assignment_is_destroyed_not_replaced(
    provider: SandboxBridgeProvider,
    make_spec: Specs,
    upstream: Upstream,
    change: str,
    env: dict[str, str],
) -> None:
    await provider.create_sandbox(make_spec())
    if change == "silent":
        upstream.sandboxes["box-1"].daemon_answers = False
    else:
        upstream.set_state("box-1", change)
    error = await refusal(provider, make_spec(env=env))
    assert error.status_code == 502
    assert upstream.deleted == ["box-1"]
    assert upstream.sandboxes == {}


async def test_an_unusable_sandbox_that_survives_is_named(
    provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    await provider.create_sandbox(make_spec())
    upstream.set_state("box-1", "Failed")
    upstream.sandboxes["box-1"].immortal = True
    error = await refusal(provider, make_spec())
    assert error.data == {"sandbox_id": "box-1", "leaked_sandbox_id": "box-1"}


async def test_an_owner_that_cannot_be_read_is_an_error_of_the_runtime(
    provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    """Of the repeated assignment, whose sandbox nobody may take or destroy then."""
    await provider.create_sandbox(make_spec())
    metadata = upstream.sandboxes["box-1"].sandbox.metadata
    metadata["projected.astrabox/0123456789abcdef.0-2"] = "damaged"
    error = await refusal(provider, make_spec(env={"NEW": "1"}))
    assert (error.code, error.status_code) == ("AGENT_RUNTIME_ERROR", 502)
    with pytest.raises(APIError, match="AGENT_RUNTIME_ERROR.*0123456789abcdef"):
        await provider.find_sandbox_by_assignment("assignment-1")
    assert list(upstream.sandboxes) == ["box-1"]


async def test_duplicates_are_not_chosen_from(
    provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    await provider.create_sandbox(make_spec())
    kept = upstream.sandboxes["box-1"]
    upstream.create(kept.spec, kept.sandbox.request_id)
    error = await refusal(provider, make_spec())
    assert (error.code, error.status_code) == ("SANDBOX_ASSIGNMENT_AMBIGUOUS", 409)
    with pytest.raises(APIError, match="SANDBOX_ASSIGNMENT_AMBIGUOUS.*box-1"):
        await provider.find_sandbox_by_assignment("assignment-1")
    assert len(upstream.sandboxes) == 2


# --- nothing is left behind -----------------------------------------------------------------------


async def test_cancelled_during_set_up(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    """The destruction survives the cancellation, and a second one."""
    bridge.hold("Execute")
    deleting = bridge.hold("DeleteSandbox")
    creating = asyncio.create_task(
        provider.create_sandbox(make_spec(requires_command_channel=True))
    )
    await asyncio.wait_for(bridge.waiting["Execute"].wait(), 10)
    creating.cancel()
    await asyncio.wait_for(bridge.waiting["DeleteSandbox"].wait(), 10)
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    deleting.set()
    await provider.shutdown_current_loop_resources()
    assert upstream.sandboxes == {}


async def test_cancelled_while_the_answer_is_on_its_way(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    """The sandbox exists and nobody has heard of it."""
    bridge.hold("CreateSandbox")
    creating = asyncio.create_task(provider.create_sandbox(make_spec()))
    await asyncio.wait_for(bridge.waiting["CreateSandbox"].wait(), 10)
    assert list(upstream.sandboxes) == ["box-1"]
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    await provider.shutdown_current_loop_resources()
    assert upstream.deleted == ["box-1"]


async def test_a_broken_connection_is_repeated_and_makes_one_sandbox(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    bridge.fail("CreateSandbox", "UPSTREAM_UNAVAILABLE", "socket closed", bare=True)
    handle = await provider.create_sandbox(make_spec())
    assert handle.sandbox_id == "box-1"
    assert len(bridge.asked("CreateSandbox")) == 2
    assert len(upstream.sandboxes) == 1


async def test_a_draining_bridge_is_asked_again(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    bridge.fail("CreateSandbox", "DRAINING", retry_after=0.01)
    await provider.create_sandbox(make_spec())
    assert len(bridge.asked("CreateSandbox")) == 2


async def test_answers_of_the_bridge_are_not_repeated(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    bridge.fail("CreateSandbox", "UPSTREAM_UNAVAILABLE", "the server is down")
    error = await refusal(provider, make_spec())
    assert (error.code, error.status_code, error.retryable) == ("AGENT_RUNTIME_ERROR", 502, True)
    assert len(bridge.asked("CreateSandbox")) == 1


async def test_a_lost_answer_leaves_nothing(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    """The sandbox is made each time, and the connection breaks before the answer."""
    original = upstream.create

    def create_and_break(spec: Any, request_id: str = "") -> Any:
        original(spec, request_id)
        raise Fault("UPSTREAM_UNAVAILABLE", "socket closed", bare=True)

    upstream.create = create_and_break  # type: ignore[method-assign]
    bridge.fail("CreateSandbox", "UPSTREAM_UNAVAILABLE", "socket closed", bare=True, times=2)
    error = await refusal(provider, make_spec())
    assert error.cause_code == "BRIDGE_UNREACHABLE"
    assert upstream.deleted == ["box-1"]
    assert upstream.sandboxes == {}


async def test_a_lost_answer_whose_sandbox_survives_is_named(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs, upstream: Upstream
) -> None:
    kept = upstream.sandboxes[
        upstream.create(
            v1.SandboxSpec(), labels.request_id(INSTALLATION, "assignment-1")
        ).sandbox_id
    ]
    kept.immortal = True
    bridge.fail("CreateSandbox", "DEADLINE_EXCEEDED", bare=True)
    error = await refusal(provider, make_spec())
    assert error.data == {"sandbox_id": "box-1", "leaked_sandbox_id": "box-1"}


async def test_the_bridges_own_leak_is_passed_on(
    bridge: FakeBridge, provider: SandboxBridgeProvider, make_spec: Specs
) -> None:
    bridge.fail("CreateSandbox", "READY_TIMEOUT", "not ready", leaked_sandbox_id="box-7")
    error = await refusal(provider, make_spec())
    assert error.data == {"sandbox_id": "box-7", "leaked_sandbox_id": "box-7"}


async def test_secrets_do_not_appear(
    bridge: FakeBridge,
    make_provider: Providers,
    make_spec: Specs,
    tmp_path: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = tmp_path / "token"
    file.write_text("CANARY-TOKEN-1\n")
    provider = make_provider(TOKEN_FILE=str(file))
    bridge.fail("CreateSandbox", "UPSTREAM_FAILED", "echo: Bearer CANARY-TOKEN-1")
    with caplog.at_level(logging.DEBUG):
        error = await refusal(provider, make_spec(env={"SECRET": "CANARY-ENV-2"}))
    shown = repr(error.__dict__) + str(error) + repr(error.args) + caplog.text
    assert "CANARY" not in shown
    metadata = next(m for name, _, m in bridge.calls if name == "CreateSandbox")
    assert metadata["authorization"] == "Bearer CANARY-TOKEN-1"
