# SPDX-License-Identifier: Apache-2.0
"""Isolated sessions through the provider and the real bridge, on daemons that have them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import SandboxCreateSpec
from astrabox_sandbox_bridge.client import v1
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider

from conftest import Providers
from isolating_upstream import IsolatingUpstream
from real_bridge import LocalOpenSandbox, RealBridge

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def upstream() -> Iterator[IsolatingUpstream]:
    with LocalOpenSandbox("--isolation=none") as local, IsolatingUpstream(local.place) as front:
        yield front


@pytest.fixture(scope="module")
def bridges(upstream: IsolatingUpstream) -> Iterator[tuple[RealBridge, RealBridge]]:
    with RealBridge(upstream.place) as one, RealBridge(upstream.place) as two:
        yield one, two


@pytest.fixture
def live(bridges: tuple[RealBridge, RealBridge], make_provider: Providers) -> Any:
    return make_provider(ADDRESS=bridges[0].place)


@pytest_asyncio.fixture
async def box(
    live: SandboxBridgeProvider, make_spec: Callable[..., SandboxCreateSpec]
) -> AsyncIterator[str]:
    spec = make_spec(
        image="debian:12",
        entrypoint=("tail", "-f", "/dev/null"),
        resource_limits={"cpu": "1", "memory": "1Gi"},
        assignment_id=os.urandom(8).hex(),
    )
    handle = await live.create_sandbox(spec)
    yield handle.sandbox_id
    assert await live.kill(handle.sandbox_id)


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    place = tmp_path / "a workspace"
    place.mkdir()
    return str(place)


async def _open(live: SandboxBridgeProvider, box: str, workspace: str) -> str:
    session = await live.open_isolated_session(
        box, workspace_dir=workspace, workspace_source_dir=workspace, uid=0, gid=0
    )
    return session.session_id


async def test_from_open_to_close(live: SandboxBridgeProvider, box: str, workspace: str) -> None:
    assert (await live.read_isolation_capability(box)).isolator == "bwrap"
    before = await live.count_active_isolated_sessions(box)
    name = await _open(live, box, workspace)
    assert await live.count_active_isolated_sessions(box) == before + 1
    ran = await live.run_in_isolated_session(
        box, name, code='pwd; echo "$A"; echo e >&2; exit 4', envs={"A": "it's $HOME"}
    )
    assert ran == (4, f"{workspace}\nit's $HOME\ne\n", "")
    found = await live.find_isolated_sessions_by_workspace(box, workspace_source_dir=workspace)
    assert [(s.session_id, s.uid, s.gid, s.workspace_dir) for s in found] == [
        (name, 0, 0, workspace)
    ]
    await live.close_isolated_session(box, name)
    await live.close_isolated_session(box, name)
    assert await live.find_isolated_sessions_by_workspace(box, workspace_source_dir=workspace) == ()


async def test_a_stream_ends_with_done(
    live: SandboxBridgeProvider, box: str, workspace: str
) -> None:
    name = await _open(live, box, workspace)
    script = "for i in 1 2 3; do echo $i; done; exit 2"
    events = [e async for e in live.stream_in_isolated_session(box, name, code=script)]
    assert "".join(e["text"] for e in events if e["type"] == "stdout") == "1\n2\n3\n"
    assert events[-1] == {"type": "__done__", "exit_code": 2}
    await live.close_isolated_session(box, name)


async def test_scripts_that_are_cut_off_leave_the_session(
    live: SandboxBridgeProvider, box: str, workspace: str
) -> None:
    name = await _open(live, box, workspace)
    mark = f"8000.{os.getpid()}"
    with pytest.raises(TimeoutError):
        await live.run_in_isolated_session(box, name, code=f"sleep {mark}1", timeout_s=0.3)
    running = asyncio.create_task(live.run_in_isolated_session(box, name, code=f"sleep {mark}2"))
    for _ in range(600):
        if _sleeping(f"{mark}2"):
            break
        await asyncio.sleep(0.05)
    assert _sleeping(f"{mark}2")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await live.run_in_isolated_session(box, name, code="echo again"))[1] == "again\n"
    assert not _sleeping(mark)
    await live.close_isolated_session(box, name)


async def test_a_session_is_used_through_any_replica(
    live: SandboxBridgeProvider,
    bridges: tuple[RealBridge, RealBridge],
    make_provider: Providers,
    box: str,
    workspace: str,
) -> None:
    name = await _open(live, box, workspace)
    other = make_provider(ADDRESS=bridges[1].place)
    first = asyncio.create_task(live.run_in_isolated_session(box, name, code="sleep 0.5; echo 1"))
    second = await other.run_in_isolated_session(box, name, code="echo 2")
    assert second[1] == "2\n"
    assert (await first)[1] == "1\n"
    await other.close_isolated_session(box, name)
    with pytest.raises(APIError) as caught:
        await live.run_in_isolated_session(box, name, code="true")
    assert (caught.value.code, caught.value.status_code) == (
        "SANDBOX_ISOLATED_SESSION_NOT_FOUND",
        409,
    )


async def test_a_sandbox_that_is_gone_is_not_a_missing_session(
    live: SandboxBridgeProvider, make_spec: Callable[..., SandboxCreateSpec]
) -> None:
    with pytest.raises(APIError) as caught:
        await live.run_in_isolated_session("no-such-sandbox", "x", code="true")
    assert (caught.value.code, caught.value.status_code) == ("SANDBOX_GONE", 404)
    await live.close_isolated_session("no-such-sandbox", "x")


async def test_the_bridge_says_so(live: SandboxBridgeProvider, box: str) -> None:
    rows = (await live.client().bridge.capabilities(box)).capabilities
    (row,) = [row for row in rows if row.feature == "isolation"]
    assert row.level == v1.Capability.LEVEL_DEGRADED
    assert "lines" in row.note


async def test_exact_bytes_are_refused(
    live: SandboxBridgeProvider, box: str, workspace: str
) -> None:
    name = await _open(live, box, workspace)
    request = v1.RunInIsolatedSessionRequest(
        sandbox_id=box, session_id=name, script="true", fidelity=v1.FIDELITY_BYTES
    )
    stream = live.client().isolation._stub.RunInIsolatedSession(request)
    with pytest.raises(Exception, match="lines"):
        await anext(aiter(stream))
    await live.close_isolated_session(box, name)


def _sleeping(argument: str) -> bool:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"sleep" and words[1].startswith(argument.encode()):
            return True
    return False
