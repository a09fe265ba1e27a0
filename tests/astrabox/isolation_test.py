# SPDX-License-Identifier: Apache-2.0
"""Isolated sessions, where the daemon has them and where it has not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import SandboxCreateSpec
from astrabox_sandbox_bridge.client import v1
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider
from astrabox_sandbox_bridge.provider.isolation import exit_of

from fake_bridge import FakeBridge, Upstream

pytestmark = pytest.mark.asyncio

Specs = Callable[..., SandboxCreateSpec]


async def _open(provider: SandboxBridgeProvider, box: str, source: str = "/w/1") -> str:
    session = await provider.open_isolated_session(
        box, workspace_dir="/workspace", workspace_source_dir=source, uid=1000, gid=1001
    )
    return session.session_id


async def test_sessions_from_open_to_close(provider: SandboxBridgeProvider, box: str) -> None:
    assert (await provider.read_isolation_capability(box)).available
    assert await provider.count_active_isolated_sessions(box) == 0
    session = await _open(provider, box)
    await _open(provider, box, "/w/2")
    assert await provider.count_active_isolated_sessions(box) == 2
    found = await provider.find_isolated_sessions_by_workspace(box, workspace_source_dir="/w/1")
    assert [(s.session_id, s.uid, s.gid, s.workspace_dir) for s in found] == [
        (session, 1000, 1001, "/workspace")
    ]
    ran = await provider.run_in_isolated_session(
        box, session, code="echo $A; echo e >&2; exit 4", envs={"A": "a b"}
    )
    assert ran == (4, "a b\n", "e\n")
    await provider.close_isolated_session(box, session)
    await provider.close_isolated_session(box, session)
    assert await provider.count_active_isolated_sessions(box) == 1


async def test_streaming(provider: SandboxBridgeProvider, box: str) -> None:
    session = await _open(provider, box)
    events = [
        event
        async for event in provider.stream_in_isolated_session(
            box, session, code="printf '☃日'; sleep 0.05; printf 'é\\n' ; echo x >&2; exit 3"
        )
    ]
    assert events[-1] == {"type": "__done__", "exit_code": 3}
    text = {"stdout": "", "stderr": ""}
    for event in events[:-1]:
        text[event["type"]] += event["text"]
    assert text == {"stdout": "☃日é\n", "stderr": "x\n"}


async def test_characters_cut_by_the_stream_are_whole(
    provider: SandboxBridgeProvider, box: str
) -> None:
    session = await _open(provider, box)
    code = "for b in '\\342' '\\230' '\\203' '\\377'; do printf \"$b\"; sleep 0.05; done"
    stream = provider.stream_in_isolated_session(box, session, code=code)
    texts = [event["text"] async for event in stream if event["type"] == "stdout"]
    assert "".join(texts) == "☃\ufffd"


async def test_deadlines(provider: SandboxBridgeProvider, box: str) -> None:
    session = await _open(provider, box)
    with pytest.raises(TimeoutError):
        await provider.run_in_isolated_session(box, session, code="sleep 60", timeout_s=0.3)
    events = [
        event
        async for event in provider.stream_in_isolated_session(
            box, session, code="sleep 60", timeout_s=0.3
        )
    ]
    assert events[0]["type"] == "__error__"
    assert events[0]["name"] == "TimeoutError"
    assert events[-1] == {"type": "__done__", "exit_code": 124}


async def test_absent_session_and_absent_sandbox_are_told_apart(
    provider: SandboxBridgeProvider, box: str, upstream: Upstream
) -> None:
    with pytest.raises(APIError) as caught:
        await provider.run_in_isolated_session(box, "no-session", code="true")
    assert (caught.value.code, caught.value.status_code) == (
        "SANDBOX_ISOLATED_SESSION_NOT_FOUND",
        409,
    )
    with pytest.raises(APIError) as caught:
        await provider.run_in_isolated_session("nothing", "s", code="true")
    assert (caught.value.code, caught.value.status_code) == ("SANDBOX_GONE", 404)
    upstream.sandboxes[box].daemon_answers = False
    with pytest.raises(APIError) as caught:
        await provider.run_in_isolated_session(box, "s", code="true")
    assert caught.value.status_code == 502
    # Closing what is gone is done; closing what cannot be asked is not.
    await provider.close_isolated_session("nothing", "s")
    with pytest.raises(APIError):
        await provider.close_isolated_session(box, "s")
    with pytest.raises(APIError):
        await provider.count_active_isolated_sessions(box)


@pytest.mark.parametrize("state", ["Terminated", "Failed"])
async def test_sessions_end_with_their_sandbox(
    provider: SandboxBridgeProvider, box: str, upstream: Upstream, state: str
) -> None:
    session = await _open(provider, box)
    upstream.set_state(box, state)
    await provider.close_isolated_session(box, session)


async def test_a_session_of_a_paused_sandbox_is_not_closed(
    provider: SandboxBridgeProvider, box: str, upstream: Upstream
) -> None:
    """It goes on when the sandbox does: "closed" would be made up."""
    session = await _open(provider, box)
    upstream.set_state(box, "Paused")
    with pytest.raises(APIError) as caught:
        await provider.close_isolated_session(box, session)
    assert caught.value.status_code == 502


async def test_workspaces_are_private(
    provider: SandboxBridgeProvider, box: str, tmp_path: Any
) -> None:
    place = f"{tmp_path}/w"
    handle = await provider.connect(box)
    for _ in range(2):
        await provider.prepare_isolated_workspace(box, workspace_dir=place, uid=5, gid=60)
        ran = await handle.commands.run(f"stat -c '%u %g %a' {place}; chmod 755 {place}")
        assert ran.stdout == "5 60 700\n"
    with pytest.raises(APIError) as caught:
        await provider.prepare_isolated_workspace(box, workspace_dir="w", uid=5, gid=60)
    assert (caught.value.code, caught.value.status_code) == ("INVALID_REQUEST", 400)
    with pytest.raises(APIError, match="CONVERSATION_IDENTITY_INVALID"):
        await provider.find_isolated_sessions_by_workspace(box, workspace_source_dir="w")


@pytest.mark.parametrize("place", ["link", "link/sub", "link/sub/deeper"])
async def test_no_link_leads_to_a_workspace(
    provider: SandboxBridgeProvider, box: str, tmp_path: Path, place: str
) -> None:
    """Its user could have made it, and would be given what it points to."""
    root = tmp_path.resolve()
    victim = root / "victim"
    (victim / "sub").mkdir(parents=True)
    victim.chmod(0o755)
    (root / "link").symlink_to(victim)
    with pytest.raises(APIError, match="link is a symbolic link") as caught:
        await provider.prepare_isolated_workspace(
            box, workspace_dir=f"{root}/{place}", uid=5, gid=60
        )
    assert (caught.value.code, caught.value.status_code) == ("INVALID_REQUEST", 400)
    for directory in (victim, victim / "sub"):
        seen = directory.stat()
        assert (seen.st_uid, seen.st_mode & 0o777) == (os.getuid(), 0o755)
    assert not (victim / "sub" / "deeper").exists()


async def test_a_group_without_a_user_is_not_dropped(
    bridge: FakeBridge, provider: SandboxBridgeProvider, box: str
) -> None:
    with pytest.raises(APIError) as caught:
        await provider.open_isolated_session(
            box, workspace_dir="/w", workspace_source_dir="/w", gid=60
        )
    assert (caught.value.code, caught.value.status_code) == ("SANDBOX_CONFIG_INVALID", 400)
    assert bridge.asked("OpenIsolatedSession") == []


async def test_where_the_bridge_has_no_isolation(
    upstream: Upstream, environment: pytest.MonkeyPatch, make_spec: Specs
) -> None:
    async with FakeBridge(upstream, isolation=False) as old:
        environment.setenv("ASTRABOX_SANDBOX_BRIDGE_ADDRESS", old.address)
        environment.setenv("ASTRABOX_SANDBOX_BRIDGE_START_TIMEOUT_SECONDS", "0")
        provider = SandboxBridgeProvider()
        capability = await provider.read_isolation_capability("box-1")
        assert not capability.available
        assert capability.detail
        with pytest.raises(APIError) as caught:
            await _open(provider, "box-1")
        assert (caught.value.code, caught.value.status_code) == (
            "SANDBOX_ISOLATION_UNSUPPORTED",
            501,
        )
        await provider.shutdown_current_loop_resources()


@pytest.mark.parametrize(
    ("outcome", "code", "failed"),
    [
        (v1.Outcome(exit_code=0), 0, False),
        (v1.Outcome(exit_code=9), 9, False),
        (v1.Outcome(signal=v1.Outcome.Signalled(number=9)), 137, False),
        (v1.Outcome(timed_out=v1.Outcome.TimedOut()), 124, True),
        (v1.Outcome(lost=v1.Outcome.Lost()), 255, True),
        (v1.Outcome(), 255, True),
    ],
)
async def test_ends(outcome: v1.Outcome, code: int, failed: bool) -> None:
    exit_code, error = exit_of(outcome, 1.0)
    assert (exit_code, error is not None) == (code, failed)


async def test_headroom_and_ports_by_the_platforms_defaults(
    provider: SandboxBridgeProvider, box: str
) -> None:
    """They read the sandbox through its commands."""
    limit, used = await provider.read_memory_headroom(box)
    assert used >= 0
    assert limit >= 0
    assert isinstance(await provider.read_listening_ports(box), set)
